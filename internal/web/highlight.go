package web

import (
	"fmt"
	"html/template"
	"io"
	"strconv"
	"strings"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"

	"svc/internal/git"
)

// anchored joins lines of a file, each with an anchor that has its number.
func anchored(lines []string, show excerpt) template.HTML {
	var b strings.Builder
	for n := show.First; n <= show.Last; n++ {
		at := strconv.Itoa(n)
		b.WriteString(`<span id="L` + at + `"><a href="#L` + at + `" data-n="` + at + `" aria-label="Line ` + at + `"></a>` + lines[n-1] + "\n</span>")
	}
	return template.HTML(b.String())
}

// colourLines colours a text and gives its lines apart.
func colourLines(name, source string) ([]string, error) {
	lines, err := tokens(name, "", source)
	if err != nil {
		return nil, err
	}
	list := make([]string, len(lines))
	for i, line := range lines {
		if n := len(line); n > 0 { // some take the end of the line into a comment
			line[n-1].Value = strings.TrimSuffix(line[n-1].Value, "\n")
		}
		var b strings.Builder
		writeTokens(&b, line)
		list[i] = b.String()
	}
	return list, nil
}

// coloured is colourLines for a file that is known by the id of its content:
// to take a long one apart takes longer than all else on its page.
func (w *Web) coloured(name, source string, id git.OID) ([]string, error) {
	key := rendering{name: "lines of " + name, id: id}
	if html, ok := w.painted.get(key); ok {
		return strings.Split(string(html), "\n"), nil
	}
	lines, err := colourLines(name, source)
	if err == nil && len(lines) > 0 {
		w.painted.put(key, template.HTML(strings.Join(lines, "\n"))) // no line has an end in it
	}
	return lines, err
}

// colour writes code without anchors.
func colour(w io.Writer, name, language, source string) error {
	lines, err := tokens(name, language, source)
	if err != nil {
		return err
	}
	for _, line := range lines {
		writeTokens(w, line)
	}
	return nil
}

// maxColoured is the most that is taken apart; more is shown as it is.
const maxColoured = 256 << 10

func tokens(name, language, source string) ([][]chroma.Token, error) {
	var lexer chroma.Lexer
	if language != "" {
		lexer = lexers.Get(language)
	}
	if lexer == nil {
		lexer = lexerNames().find(name)
	}
	if lexer == nil || len(source) > maxColoured {
		lexer = lexers.Fallback
	}
	it, err := chroma.Coalesce(lexer).Tokenise(nil, shownText(strings.ReplaceAll(source, "\r\n", "\n")))
	if err != nil {
		return nil, fmt.Errorf("highlight: %w", err)
	}
	return chroma.SplitTokensIntoLines(it.Tokens()), nil
}

func writeTokens(w io.Writer, line []chroma.Token) {
	for _, t := range line {
		text := template.HTMLEscapeString(t.Value)
		if class := className(t.Type); class != "" && strings.TrimSpace(t.Value) != "" {
			_, _ = fmt.Fprintf(w, `<span class="%s">%s</span>`, class, text)
			continue
		}
		_, _ = io.WriteString(w, text)
	}
}

// className is the class of a kind of token, or of the kind that it is one
// of. Plain text has none, and few kinds look different from it.
func className(t chroma.TokenType) string {
	switch {
	case t.InCategory(chroma.Comment):
		return "c"
	case t.InCategory(chroma.Keyword):
		if t == chroma.KeywordType {
			return "kt"
		}
		return "k"
	case t.InSubCategory(chroma.LiteralString):
		return "s"
	case t.InSubCategory(chroma.LiteralNumber):
		return "m"
	case t == chroma.NameFunction, t == chroma.NameFunctionMagic:
		return "nf"
	case t == chroma.NameTag, t == chroma.NameBuiltin, t == chroma.NameClass, t == chroma.NameDecorator:
		return "nt"
	case t == chroma.NameAttribute, t == chroma.NameConstant, t == chroma.NameVariable:
		return "na"
	case t == chroma.GenericDeleted:
		return "gd"
	case t == chroma.GenericInserted:
		return "gi"
	case t == chroma.GenericHeading, t == chroma.GenericSubheading:
		return "gh"
	}
	return ""
}
