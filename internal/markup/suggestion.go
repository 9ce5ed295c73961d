package markup

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Suggestion is a fenced code block with the language suggestion: a replacement
// of the commented line, of Above lines before it and of Below lines after it.
type Suggestion struct {
	Above, Below int
	Content      string // lines, each with a line feed; empty to delete them
}

// MaxSuggestionLines is the maximum of Suggestion.Above and Suggestion.Below.
const MaxSuggestionLines = 100

// suggestionInfo matches the info string of a suggestion.
var suggestionInfo = regexp.MustCompile(`^suggestion(?::-([0-9]{1,4})\+([0-9]{1,4}))?$`)

// Suggestions returns the suggestions in a text, in order. A text that is too
// expensive to parse has none.
func Suggestions(ctx context.Context, source string) []Suggestion {
	if !strings.Contains(source, "suggestion") {
		return nil
	}
	var list []Suggestion
	_, err := spending(ctx, scanLimits, func(b *budget) error {
		list = suggestionsIn(b, source)
		return nil
	})
	if err != nil {
		return nil
	}
	return list
}

func suggestionsIn(b *budget, source string) []Suggestion {
	var list []Suggestion
	doc := engine(b, style{}, source).Parser().Parse(&countedReader{Reader: text.NewReader([]byte(source)), budget: b})
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		b.spend(1)
		block, ok := n.(*ast.FencedCodeBlock)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		if one, ok := suggestion(block, []byte(source)); ok {
			list = append(list, one)
		}
		return ast.WalkContinue, nil
	})
	return list
}

// suggestion returns a code block as a suggestion, if it is one.
func suggestion(block *ast.FencedCodeBlock, source []byte) (Suggestion, bool) {
	if block.Info == nil {
		return Suggestion{}, false
	}
	m := suggestionInfo.FindStringSubmatch(strings.TrimSpace(string(block.Info.Segment.Value(source))))
	if m == nil {
		return Suggestion{}, false
	}
	var one Suggestion
	if m[1] != "" {
		above, _ := strconv.Atoi(m[1]) // only digits match
		below, _ := strconv.Atoi(m[2])
		one.Above, one.Below = min(above, MaxSuggestionLines), min(below, MaxSuggestionLines)
	}
	var code strings.Builder
	for i := range block.Lines().Len() {
		line := block.Lines().At(i)
		code.Write(line.Value(source))
	}
	if one.Content = code.String(); one.Content != "" && !strings.HasSuffix(one.Content, "\n") {
		one.Content += "\n"
	}
	return one, true
}

// slots generates placeholders for the suggestions of a text until it has been
// sanitized, like marks for its checkboxes.
type slots struct {
	secret string
	count  int
}

func (s *slots) put(w util.BufWriter) {
	_, _ = w.WriteString("\n\uE0F0" + s.secret + "s" + strconv.Itoa(s.count) + "\uE0F1\n")
	s.count++
}

// fill replaces the placeholders.
func (s *slots) fill(html string, draw func(n int) string) string {
	return regexp.MustCompile("\uE0F0"+s.secret+"s([0-9]+)\uE0F1").ReplaceAllStringFunc(html, func(slot string) string {
		n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(slot, "\uE0F0"+s.secret+"s"), "\uE0F1")) // only digits match
		return draw(n)
	})
}
