package markup

import (
	"html"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/chroma/v2"
)

// maxHighlighted is the maximum number of bytes of a text that is highlighted.
const maxHighlighted = 256 << 10

// lexerFor returns the library's lexer for a language or, if that is empty or
// unknown, for a file name. It returns nil for plain text and for long texts.
func lexerFor(name, language, source string) chroma.Lexer {
	if len(source) > maxHighlighted {
		return nil
	}
	if language != "" {
		if l := lexerNames().language(language); l != nil {
			return l
		}
	}
	return lexerNames().find(name)
}

// highlight returns the tokens of each line of a text. ok is false if the lexer is
// disabled or fails, or if its tokens are not the text: some lexers drop parts.
func (s *session) highlight(b *budget, lexer chroma.Lexer, source string) (lines [][]chroma.Token, ok bool) {
	own := s.bounded(lexer)
	if own == nil {
		return nil, false
	}
	s.budget = b
	defer func() { s.budget = nil }()
	it, err := chroma.Coalesce(own).Tokenise(nil, source)
	if err != nil {
		return nil, false
	}
	var tokens []chroma.Token
	var read strings.Builder
	for t := it(); t != chroma.EOF; t = it() {
		tokens = append(tokens, t)
		read.WriteString(t.Value)
	}
	if normalized(read.String()) != normalized(source) {
		return nil, false
	}
	return chroma.SplitTokensIntoLines(tokens), true
}

// normalized returns a text as lexers change it: with line feeds at the ends of
// lines but not at the end of the text, and valid UTF-8.
func normalized(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	if !utf8.ValidString(text) {
		text = string([]rune(text))
	}
	return strings.TrimSuffix(text, "\n")
}

// plainLines returns the lines of a text as HTML, without highlighting.
func plainLines(source string) []string {
	if source == "" {
		return nil
	}
	return strings.Split(html.EscapeString(strings.TrimSuffix(source, "\n")), "\n")
}

// htmlLines returns the lines of a highlighted text as HTML.
func htmlLines(lines [][]chroma.Token) []string {
	list := make([]string, len(lines))
	for i, line := range lines {
		if n := len(line); n > 0 { // some tokens include the end of the line
			line[n-1].Value = strings.TrimSuffix(line[n-1].Value, "\n")
		}
		var b strings.Builder
		writeTokens(&b, line)
		list[i] = strings.ReplaceAll(b.String(), "\n", " ")
	}
	return list
}

func writeTokens(w io.Writer, line []chroma.Token) {
	for _, t := range line {
		text := html.EscapeString(t.Value)
		if class := className(t.Type); class != "" && strings.TrimSpace(t.Value) != "" {
			text = `<span class="` + class + `">` + text + `</span>`
		}
		_, _ = io.WriteString(w, text)
	}
}

// className returns the CSS class of a token type or of its category. It returns an
// empty string for most types, which look like plain text.
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
