// Package markup renders Markdown and source code as sanitized HTML: files in
// repositories, issues and notes.
package markup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/alecthomas/chroma/v2"
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

// Options are the options of a rendering.
type Options struct {
	// Link returns the URL to use for a URL of a link or an image; nil keeps it.
	Link func(to string, image bool) string
	// LinkKey identifies Link in the cache: texts with the same key have the same
	// links. It is required with Link.
	LinkKey string
	// Highlight highlights code blocks.
	Highlight bool
	// Resolve returns the targets of references that the reader may see. Other
	// references are not changed. If Resolve is nil, references are not searched.
	Resolve func(refs []Reference) (map[Reference]Target, error)
	// Task renders the nth checkbox of the task lists, counted from 0; nil renders
	// disabled checkboxes. The result is not sanitized.
	Task func(n int, done bool) string
	// Suggestion renders the nth suggestion of the text, counted from 0, in the
	// order of Suggestions; nil renders suggestions as code. The result is not
	// sanitized.
	Suggestion func(n int) string
	// Wiki makes [[page]] a link to a wiki page. It needs Link.
	Wiki bool
	// Whole is the URL of the raw text, which is linked if only a part of the
	// text is shown. It may be empty.
	Whole string
}

// Markdown renders GitHub Flavored Markdown with footnotes and GitLab's extensions.
// A text that is too expensive to render is returned as by Plain. A text that is too
// long for the page is cut.
func (r *Renderer) Markdown(ctx context.Context, source string, o Options) (string, error) {
	page := pageOf(ctx)
	if most := page.part(len(source), o.Whole != ""); most > 0 && most < len(source) {
		return cut(source, most, o.Whole), nil
	}
	// Parts that depend on the reader are added afterwards, so that all readers
	// share the cached rendering.
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

// cut returns the beginning of a text as plain text, with a notice that it was cut.
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
	boxes       *marks                                           // of tasks; nil for disabled checkboxes
	suggestions *slots                                           // nil to render suggestions as code
	wiki        bool
}

// markdown renders a text within a budget, without the parts that depend on the
// reader.
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
	// Markdown may contain HTML, so the output is sanitized.
	return policy().SanitizeReader(&out).String(), nil
}

// highlighter returns a function that highlights the code blocks of a text. A block
// that would exceed half of the budget, and all blocks after it, are plain text.
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

// Plain returns a text as preformatted HTML, without rendering it.
func Plain(source string) string { return "<pre>" + html.EscapeString(source) + "</pre>" }

func engine(b *budget, s style, source string) goldmark.Markdown {
	inline := []util.PrioritizedValue{util.Prioritized(&inlineGuard{budget: b}, 0), util.Prioritized(emojiParser{}, 900), util.Prioritized(mathParser{b}, 150)}
	if s.wiki {
		inline = append(inline, util.Prioritized(wikiLinkParser{s.link}, 150))
	}
	// A page may have several texts, and IDs must be unique on a page.
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

// HeadingPrefix is the prefix of the IDs in a text. It keeps them distinct from the
// IDs of the page.
const HeadingPrefix = "user-content-"

// headings generates the IDs of headings.
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

// blocks renders code, the checkboxes of task lists and suggestions.
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
	case "math", "mermaid": // rendered by a script
		extra := ""
		if language == "math" {
			extra = ` data-math-style="display"`
		}
		_, _ = w.WriteString(`<pre class="` + language + `" tabindex="0"` + extra + `><code>` + html.EscapeString(code.String()) + "</code></pre>\n")
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString(`<pre class="chroma" tabindex="0"><code>`) // focusable for scrolling with the keyboard
	if b.code == nil {
		_, _ = w.WriteString(html.EscapeString(code.String()))
	} else if err := b.code(w, string(block.Language(source)), code.String()); err != nil {
		return ast.WalkStop, err
	}
	_, _ = w.WriteString("</code></pre>\n")
	return ast.WalkContinue, nil
}

// htmlBlock writes an HTML block of a text, with its URLs rewritten like those in
// Markdown.
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
