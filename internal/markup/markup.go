// Package markup renders Markdown and source code of users as sanitized HTML: files
// of repositories, issues and notes.
package markup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html"
	"io"
	"regexp"
	"strings"
	"sync"

	"github.com/alecthomas/chroma/v2"
	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tasks "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	rendering "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Options say what differs between the places that show texts.
type Options struct {
	// Link makes an address of ours of one in the text; nil leaves it.
	Link func(to string, image bool) string
	// LinkKey names what Link does: texts with the same one have the same
	// links. It is needed where there is a Link.
	LinkKey string
	// Highlight says that code is highlighted.
	Highlight bool
	// Resolve finds what the references in the text stand for, as far as the
	// reader may know; what it does not find stays as it was written. Nil looks
	// for none.
	Resolve func(refs []Reference) (map[Reference]Target, error)
	// Task draws the nth box of the lists of tasks, counted from 0; nil draws
	// boxes that can only be looked at. What it gives is not cleaned.
	Task func(n int, done bool) string
	// Suggestion draws the nth suggestion of the text, counted from 0, as
	// Suggestions lists them; nil shows suggestions as code. The result is not
	// sanitized.
	Suggestion func(n int) string
	// Wiki says that [[page]] is a link to a page, by Link.
	Wiki bool
	// Whole is the address of the text as it was written, for a page that shows
	// only a part of it; empty when there is none.
	Whole string
}

// Markdown renders Markdown of the usual kind, with tables, lists of tasks,
// footnotes and plain addresses. A text that costs too much to render is given as
// Plain does, and one that is too long for a page for users in part.
func (r *Renderer) Markdown(ctx context.Context, source string, o Options) (string, error) {
	page := pageOf(ctx)
	if most := page.part(len(source), o.Whole != ""); most > 0 && most < len(source) {
		return cut(source, most, o.Whole), nil
	}
	// What depends on the reader is added afterwards, so that all readers share
	// the rendering.
	of := sumOf("markdown", source, o.LinkKey, fmt.Sprint(o.Link != nil, o.Highlight, o.Task != nil, o.Suggestion != nil, o.Wiki))
	found, err := r.render(ctx, of, func(b *budget) (string, error) {
		var boxes *marks
		if o.Task != nil {
			boxes = &marks{secret: r.secret}
		}
		var code func(w io.Writer, language, source string) error
		if o.Highlight {
			code = r.highlighter(b)
		}
		var suggestions *slots
		if o.Suggestion != nil {
			suggestions = &slots{secret: r.secret}
		}
		return markdown(b, source, style{o.Link, code, boxes, suggestions, o.Wiki && o.Link != nil})
	})
	if err != nil {
		return "", fmt.Errorf("render: %w", err)
	}
	if !found.ok {
		page.html.Add(int64(len(source)))
		return Plain(source), nil
	}
	safe, err := r.show(ctx, found.html)
	if err != nil {
		return "", err
	}
	if o.Resolve != nil {
		if safe, err = refer(safe, o.Resolve); err != nil {
			return "", err
		}
	}
	if o.Task != nil {
		safe = (&marks{secret: r.secret}).fill(safe, o.Task)
	}
	if o.Suggestion != nil {
		safe = (&slots{secret: r.secret}).fill(safe, o.Suggestion)
	}
	if total := page.html.Add(int64(len(safe))); page.bounded && total > pageHTML {
		return cut(source, restSource, o.Whole), nil
	}
	return safe, nil
}

// cut returns the beginning of a text as it was written, and says so.
func cut(source string, most int, whole string) string {
	link := ""
	if whole != "" {
		link = ` <a href="` + html.EscapeString(whole) + `">Read the whole text</a>`
	}
	start := strings.ToValidUTF8(source[:min(most, len(source))], "")
	return fmt.Sprintf("<p><em>This text has %d KiB. Only its beginning is shown, as plain text.</em>%s</p>\n%s", (len(source)+1023)>>10, link, Plain(start))
}

// style is how a text is rendered.
type style struct {
	link        func(to string, image bool) string
	code        func(w io.Writer, language, source string) error // highlights code
	boxes       *marks                                           // of tasks; nil for boxes to be looked at
	suggestions *slots                                           // nil to show suggestions as code
	wiki        bool
}

// markdown renders a text within a budget, up to what depends on its reader.
func markdown(b *budget, source string, s style) (string, error) {
	md := engine(b, s, source)
	link, toc := s.link, contents{budget: b, source: []byte(source)}
	doc := md.Parser().Parse(&countedReader{Reader: text.NewReader([]byte(source)), budget: b}, parser.WithContext(parser.NewContext(parser.WithIDs(&headings{}))))
	err := ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if b.spend(1); !entering {
			return ast.WalkContinue, nil
		}
		if toc.look(n); link == nil {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			n.Destination = []byte(link(string(n.Destination), false))
		case *ast.Image:
			n.Destination = []byte(link(string(n.Destination), true))
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return "", err
	}
	toc.fill()
	out := countedBuffer{budget: b, most: mostOutput(len(source))}
	if err := md.Renderer().Render(&out, []byte(source), doc); err != nil {
		return "", err
	}
	// Markdown may hold HTML of its own, so what comes out is cleaned.
	return policy().SanitizeReader(&out).String(), nil
}

// highlighter highlights the blocks of code of a text: together they may take
// half of its budget, and what is over that stays plain.
func (r *Renderer) highlighter(b *budget) func(w io.Writer, language, source string) error {
	over := false
	limits := Limits{CPU: b.limits.CPU / 2, Steps: b.limits.Steps / 2}
	return func(w io.Writer, language, source string) error {
		var lines [][]chroma.Token
		ok := false
		b.spend(1000) // to find the lexer
		if lexer := lexerFor("x."+language, language, source); lexer != nil && !over {
			use := r.session()
			defer r.idle.Put(use)
			over = !b.within(limits, func() { lines, ok = use.highlight(b, lexer, source) })
		}
		if !ok || over {
			_, err := io.WriteString(w, html.EscapeString(source))
			return err
		}
		for _, line := range lines {
			writeTokens(w, line)
		}
		return nil
	}
}

// Plain shows a text as it was written.
func Plain(source string) string { return "<pre>" + html.EscapeString(source) + "</pre>" }

func engine(b *budget, s style, source string) goldmark.Markdown {
	inline := []util.PrioritizedValue{util.Prioritized(&inlineGuard{budget: b}, 0), util.Prioritized(emojiParser{}, 900), util.Prioritized(mathParser{b}, 150)}
	if s.wiki {
		inline = append(inline, util.Prioritized(wikiLinkParser{s.link}, 150))
	}
	// A page has many texts, and ids are unique on it.
	sum := sha256.Sum256([]byte(source))
	return goldmark.New(
		goldmark.WithExtensions(extension.GFM, extension.NewFootnote(extension.WithFootnoteIDPrefix(HeadingPrefix+hex.EncodeToString(sum[:4])+"-"))),
		goldmark.WithParserOptions(
			parser.WithAutoHeadingID(),
			parser.WithInlineParsers(inline...),
			parser.WithParagraphTransformers(util.Prioritized(tableGuard{b}, 0), util.Prioritized(alerts{b}, 50)),
		),
		goldmark.WithRendererOptions(rendering.WithUnsafe(), renderer.WithNodeRenderers(util.Prioritized(blocks{s}, 100), util.Prioritized(syntax{}, 100))),
	)
}

// policy is what may stand in a text of someone: no script, no style, no form, no
// frame.
var policy = sync.OnceValue(func() *bluemonday.Policy {
	p := bluemonday.UGCPolicy()
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^(chroma|[a-z][a-z0-9]{0,3}|language-[\w+#-]{1,40}|footnote[\w-]{0,20}|task-list-item|mermaid|markdown-alert( markdown-alert-[a-z]{1,10})?|markdown-alert-title)$`)).
		OnElements("span", "pre", "code", "div", "li", "a", "sup", "p")
	p.AllowAttrs("data-math-style").Matching(regexp.MustCompile(`^(inline|display)$`)).OnElements("code", "pre")
	p.AllowAttrs("type", "checked", "disabled").Matching(regexp.MustCompile(`^(checkbox|checked|disabled|)$`)).OnElements("input")
	p.AllowAttrs("aria-label").Matching(regexp.MustCompile(`^(Done|To do)$`)).OnElements("input")
	p.AllowAttrs("tabindex").Matching(regexp.MustCompile(`^0$`)).OnElements("pre")
	p.AllowAttrs("align").Matching(regexp.MustCompile(`^(left|right|center)$`)).OnElements("p", "div", "img", "h1", "h2", "h3")
	p.RequireNoFollowOnFullyQualifiedLinks(true)
	p.RequireNoReferrerOnFullyQualifiedLinks(true)
	return p
})

// HeadingPrefix keeps ids out of a text from being those of the page.
const HeadingPrefix = "user-content-"

// headings returns headings their ids.
type headings struct{ used map[string]int }

// Generate implements parser.IDs.
func (h *headings) Generate(value []byte, _ ast.NodeKind) []byte {
	slug := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_', r > 127:
			return r
		case r == ' ':
			return '-'
		}
		return -1
	}, strings.ToLower(strings.TrimSpace(string(value))))
	if h.used == nil {
		h.used = map[string]int{}
	}
	id := HeadingPrefix + slug
	if n := h.used[slug]; n > 0 {
		id = fmt.Sprintf("%s-%d", id, n)
	}
	h.used[slug]++
	return []byte(id)
}

// Put implements parser.IDs.
func (h *headings) Put([]byte) {}

// blocks renders code, the boxes of task lists and suggestions.
type blocks struct{ style }

// RegisterFuncs implements renderer.NodeRenderer.
func (b blocks) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, b.fenced)
	if b.link != nil {
		r.Register(ast.KindHTMLBlock, b.htmlBlock)
		r.Register(ast.KindRawHTML, b.rawHTML)
	}
	r.Register(tasks.KindTaskCheckBox, b.task)
}

func (b blocks) fenced(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	block := n.(*ast.FencedCodeBlock)
	if b.suggestions != nil {
		if _, ok := suggestion(block, source); ok {
			b.suggestions.put(w)
			return ast.WalkContinue, nil
		}
	}
	var code strings.Builder
	for i := range block.Lines().Len() {
		line := block.Lines().At(i)
		code.Write(line.Value(source))
	}
	switch language := string(block.Language(source)); language {
	case "math", "mermaid": // a script draws it
		extra := ""
		if language == "math" {
			extra = ` data-math-style="display"`
		}
		_, _ = w.WriteString(`<pre class="` + language + `" tabindex="0"` + extra + `><code>` + html.EscapeString(code.String()) + "</code></pre>\n")
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString(`<pre class="chroma" tabindex="0"><code>`) // long lines are scrolled by keys too
	if b.code == nil {
		_, _ = w.WriteString(html.EscapeString(code.String()))
	} else if err := b.code(w, string(block.Language(source)), code.String()); err != nil {
		return ast.WalkStop, err
	}
	_, _ = w.WriteString("</code></pre>\n")
	return ast.WalkContinue, nil
}

// htmlBlock writes HTML that stands in a text, with its addresses led as those
// of Markdown are.
func (b blocks) htmlBlock(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	block := n.(*ast.HTMLBlock)
	if !entering {
		return ast.WalkContinue, nil
	}
	text := block.Lines().Value(source)
	if block.HasClosure() {
		text = append(text, block.ClosureLine.Value(source)...)
	}
	_, _ = w.WriteString(relative(string(text), b.link))
	return ast.WalkContinue, nil
}

func (b blocks) rawHTML(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkSkipChildren, nil
	}
	_, _ = w.WriteString(relative(string(n.(*ast.RawHTML).Segments.Value(source)), b.link))
	return ast.WalkSkipChildren, nil
}

func (b blocks) task(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	if b.boxes != nil {
		b.boxes.put(w, n.(*tasks.TaskCheckBox).IsChecked)
		return ast.WalkContinue, nil
	}
	box := `<input disabled="" type="checkbox" aria-label="To do"> `
	if n.(*tasks.TaskCheckBox).IsChecked {
		box = `<input checked="" disabled="" type="checkbox" aria-label="Done"> `
	}
	_, _ = w.WriteString(box)
	return ast.WalkContinue, nil
}
