package markup

import (
	"bytes"
	"fmt"
	"html"
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"svc/internal/emoji"
)

// made is a node with HTML that a parser of this package generated. It is sanitized
// with the rest.
type made struct {
	ast.BaseInline
	html string
}

var kindMade = ast.NewNodeKind("Made")

// Kind implements ast.Node.
func (*made) Kind() ast.NodeKind { return kindMade }

// Dump implements ast.Node.
func (m *made) Dump(source []byte, level int) { ast.DumpHelper(m, source, level, nil, nil) }

func writeMade(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, _ = w.WriteString(n.(*made).html)
	}
	return ast.WalkContinue, nil
}

// emojiParser replaces names of emoji: ":tada:".
type emojiParser struct{}

// Trigger implements parser.InlineParser.
func (emojiParser) Trigger() []byte { return []byte{':'} }

// Parse implements parser.InlineParser.
func (emojiParser) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	if isWord(block.PrecendingCharacter()) {
		return nil
	}
	line, _ := block.PeekLine()
	end := bytes.IndexByte(line[1:min(len(line), emoji.MaxName+2)], ':')
	if end < 1 {
		return nil
	}
	found := emoji.Find(string(line[1 : end+1]))
	if found == nil {
		return nil
	}
	block.Advance(end + 2)
	return &made{html: `<span title="` + html.EscapeString(found.Name) + `">` + found.Text + "</span>"}
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// mathParser finds formulas in a text: $`a`$, $a$ and $$a$$.
type mathParser struct{ budget *budget }

// The maximum lengths of inline and display formulas in bytes. Longer formulas are
// shown as text.
const (
	maxInline  = 1000
	maxFormula = 10_000
)

// Trigger implements parser.InlineParser.
func (mathParser) Trigger() []byte { return []byte{'$'} }

// Parse implements parser.InlineParser.
func (p mathParser) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	if before := block.PrecendingCharacter(); before == '$' || before == '\\' {
		return nil
	}
	line, _ := block.PeekLine()
	if bytes.HasPrefix(line, []byte("$$")) {
		return p.display(block)
	}
	p.budget.spend(1)
	line = line[:min(len(line), maxInline)]
	if code, ok := bytes.CutPrefix(line, []byte("$`")); ok {
		end := bytes.Index(code, []byte("`$"))
		if end < 1 {
			return nil
		}
		block.Advance(end + 4)
		return formula(string(code[:end]), "inline")
	}
	// Most dollar signs are currency: a formula neither starts nor ends with white
	// space, and is not followed by a digit.
	rest := line[1:]
	if first, _ := utf8.DecodeRune(rest); len(rest) == 0 || unicode.IsSpace(first) {
		return nil
	}
	end := bytes.IndexByte(rest, '$')
	if end < 1 || rest[end-1] == '\\' || unicode.IsSpace(rune(rest[end-1])) || end+1 < len(rest) && rest[end+1] >= '0' && rest[end+1] <= '9' {
		return nil
	}
	block.Advance(end + 2)
	return formula(string(rest[:end]), "inline")
}

// display parses a display formula, which may have several lines.
func (p mathParser) display(block text.Reader) ast.Node {
	at, pos := block.Position()
	block.Advance(2)
	var tex strings.Builder
	for tex.Len() < maxFormula {
		p.budget.spend(1)
		line, _ := block.PeekLine()
		if line == nil {
			break
		}
		if end := bytes.Index(line, []byte("$$")); end >= 0 {
			tex.Write(line[:end])
			if strings.TrimSpace(tex.String()) == "" {
				break
			}
			block.Advance(end + 2)
			return formula(tex.String(), "display")
		}
		tex.Write(line)
		block.AdvanceLine()
	}
	block.SetPosition(at, pos)
	return nil
}

// formula returns a node with the source of a formula, which a script renders.
func formula(tex, style string) ast.Node {
	return &made{html: `<code class="math" data-math-style="` + style + `">` + html.EscapeString(tex) + "</code>"}
}

// wikiLinkParser finds wiki links: [[page]] and [[text|page]].
type wikiLinkParser struct {
	link func(to string, image bool) string
}

// Trigger implements parser.InlineParser.
func (wikiLinkParser) Trigger() []byte { return []byte{'['} }

// Parse implements parser.InlineParser.
func (p wikiLinkParser) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	line, _ := block.PeekLine()
	inner, ok := bytes.CutPrefix(line[:min(len(line), 1000)], []byte("[["))
	if !ok {
		return nil
	}
	end := bytes.Index(inner, []byte("]]"))
	if end < 1 || bytes.ContainsAny(inner[:end], "[]\n") {
		return nil
	}
	name, to, ok := strings.Cut(string(inner[:end]), "|")
	if !ok {
		to = name
	}
	if to = strings.TrimSpace(to); to == "" || to == "_TOC_" {
		return nil
	}
	block.Advance(end + 4)
	// Page names are relative to the root of the wiki.
	if !strings.Contains(to, "://") && !strings.HasPrefix(to, "#") {
		to = "/" + strings.TrimPrefix(strings.ReplaceAll(to, " ", "-"), "/")
	}
	switch strings.ToLower(path.Ext(to)) {
	case ".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg":
		return &made{html: `<img src="` + html.EscapeString(p.link(to, true)) + `" alt="` + html.EscapeString(name) + `">`}
	}
	return &made{html: `<a href="` + html.EscapeString(p.link(to, false)) + `">` + html.EscapeString(strings.TrimSpace(name)) + "</a>"}
}

// alerts converts blockquotes that start with [!note] or another type to alerts.
type alerts struct{ budget *budget }

var alertMark = regexp.MustCompile(`(?i)^\[!(note|tip|important|caution|warning)\][ \t]*(.{0,200}?)\s*$`)

// Transform implements parser.ParagraphTransformer.
func (a alerts) Transform(p *ast.Paragraph, r text.Reader, _ parser.Context) {
	a.budget.spend(1)
	quote, ok := p.Parent().(*ast.Blockquote)
	if !ok || quote.FirstChild() != p || p.Lines().Len() == 0 {
		return
	}
	first := p.Lines().At(0)
	if first.Len() > 250 {
		return
	}
	found := alertMark.FindSubmatch(first.Value(r.Source()))
	if found == nil {
		return
	}
	kind := strings.ToLower(string(found[1]))
	title := string(found[2])
	if title == "" {
		title = strings.ToUpper(kind[:1]) + kind[1:]
	}
	quote.SetAttributeString(alertAttribute, [2]string{kind, title})
	if p.Lines().Len() > 1 {
		p.Lines().SetSliced(1, p.Lines().Len())
		return
	}
	quote.RemoveChild(quote, p)
}

// alertAttribute is the attribute of a blockquote with the type and title of its
// alert.
const alertAttribute = "alert"

func writeQuote(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	alert, _ := n.AttributeString(alertAttribute)
	of, ok := alert.([2]string)
	switch {
	case ok && entering:
		_, _ = fmt.Fprintf(w, "<div class=\"markdown-alert markdown-alert-%s\">\n<p class=\"markdown-alert-title\">%s</p>\n", of[0], html.EscapeString(of[1]))
	case ok:
		_, _ = w.WriteString("</div>\n")
	case entering:
		_, _ = w.WriteString("<blockquote>\n")
	default:
		_, _ = w.WriteString("</blockquote>\n")
	}
	return ast.WalkContinue, nil
}

const (
	maxTOC        = 500 // headings in a table of contents
	maxTOCOfAText = 3
)

// contents replaces [[_TOC_]] and [TOC] with tables of contents.
type contents struct {
	budget   *budget
	source   []byte
	places   []*ast.Paragraph
	headings []*ast.Heading
}

// look records a heading, or a paragraph that a table of contents replaces.
func (c *contents) look(n ast.Node) {
	switch n := n.(type) {
	case *ast.Heading:
		if len(c.headings) < maxTOC {
			c.headings = append(c.headings, n)
		}
	case *ast.Paragraph:
		if n.Lines().Len() != 1 || len(c.places) >= maxTOCOfAText {
			return
		}
		line := n.Lines().At(0)
		switch string(bytes.TrimSpace(line.Value(c.source))) {
		case "[[_TOC_]]", "[TOC]":
			c.places = append(c.places, n)
		}
	}
}

// fill inserts the tables of contents.
func (c *contents) fill() {
	if len(c.places) == 0 {
		return
	}
	var b strings.Builder
	b.WriteString(`<div class="toc">`)
	open := []int{} // levels of the lists that are open
	for _, h := range c.headings {
		c.budget.spend(10)
		id, ok := h.AttributeString("id")
		name, isText := id.([]byte)
		if !ok || !isText {
			continue
		}
		for len(open) > 1 && open[len(open)-1] > h.Level {
			b.WriteString("</li></ul>")
			open = open[:len(open)-1]
		}
		if len(open) == 0 || open[len(open)-1] < h.Level {
			b.WriteString("<ul><li>")
			open = append(open, h.Level)
		} else {
			b.WriteString("</li><li>")
		}
		b.WriteString(`<a href="#` + html.EscapeString(string(name)) + `">` + html.EscapeString(plainText(h, c.source)) + "</a>")
	}
	b.WriteString(strings.Repeat("</li></ul>", len(open)) + "</div>")
	for _, p := range c.places {
		p.RemoveChildren(p)
		block := ast.NewTextBlock()
		block.AppendChild(block, &made{html: b.String()})
		p.Parent().ReplaceChild(p.Parent(), p, block)
	}
}

// plainText returns the text of a heading without markup.
func plainText(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function returns no error
		if !entering || b.Len() > 200 {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			b.Write(n.Segment.Value(source))
		case *ast.String:
			b.Write(n.Value)
		case *made:
			b.WriteString(html.UnescapeString(tags.ReplaceAllString(n.html, "")))
		}
		return ast.WalkContinue, nil
	})
	return strings.ToValidUTF8(b.String()[:min(b.Len(), 200)], "")
}

var tags = regexp.MustCompile(`<[^>]*>`)

// syntax registers the renderers of the nodes of this file.
type syntax struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (syntax) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(kindMade, writeMade)
	r.Register(ast.KindBlockquote, writeQuote)
}
