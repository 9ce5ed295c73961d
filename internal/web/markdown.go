package web

import (
	"bytes"
	"fmt"
	"html/template"
	"net/url"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tasks "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// spot is where a text of a repository stands, for the links in it.
type spot struct {
	project string // full path
	ref     string
	dir     string
}

func isMarkdown(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".markdown", ".mdown", ".mkd":
		return true
	}
	return false
}

// renderText makes HTML of a README or the like. Markdown may hold HTML of
// its own, so that what comes out is cleaned whatever went in.
func renderText(name, source string, at spot) (template.HTML, error) {
	if !isMarkdown(name) {
		return template.HTML("<pre>" + template.HTMLEscapeString(source) + "</pre>"), nil
	}
	md := markdown()
	doc := md.Parser().Parse(text.NewReader([]byte(source)), parser.WithContext(parser.NewContext(parser.WithIDs(&headings{}))))
	err := ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			n.Destination = []byte(at.resolve(string(n.Destination), "blob"))
		case *ast.Image:
			n.Destination = []byte(at.resolve(string(n.Destination), "raw"))
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return "", fmt.Errorf("render %s: %w", name, err)
	}
	var out bytes.Buffer
	if err := md.Renderer().Render(&out, []byte(source), doc); err != nil {
		return "", fmt.Errorf("render %s: %w", name, err)
	}
	return template.HTML(policy().SanitizeReader(&out).String()), nil
}

// resolve makes an address of ours of one that is relative to the text.
func (p spot) resolve(to, kind string) string {
	if strings.HasPrefix(to, "#") {
		return "#" + headingPrefix + strings.TrimPrefix(to, "#")
	}
	u, err := url.Parse(to)
	if err != nil || u.IsAbs() || u.Host != "" || strings.HasPrefix(to, "//") || u.Path == "" {
		return to
	}
	at := path.Join("/", p.dir, u.Path)
	if strings.HasPrefix(u.Path, "/") {
		at = path.Clean(u.Path)
	}
	resolved := pathTo(p.project, "-", kind, p.ref, at)
	if u.Fragment != "" {
		resolved += "#" + headingPrefix + u.EscapedFragment()
	}
	return resolved
}

var markdown = sync.OnceValue(func() goldmark.Markdown {
	return goldmark.New(
		goldmark.WithExtensions(extension.GFM, extension.Footnote),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(html.WithUnsafe(), renderer.WithNodeRenderers(util.Prioritized(codeBlocks{}, 100))),
	)
})

// policy is what may stand in a text of somebody: no script, no style, no
// form, no frame.
var policy = sync.OnceValue(func() *bluemonday.Policy {
	p := bluemonday.UGCPolicy()
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^(chroma|[a-z][a-z0-9]{0,3}|language-[\w+#-]{1,40}|footnote[\w-]{0,20}|task-list-item)$`)).OnElements("span", "pre", "code", "div", "li", "a", "sup")
	p.AllowAttrs("type", "checked", "disabled").Matching(regexp.MustCompile(`^(checkbox|checked|disabled|)$`)).OnElements("input")
	p.AllowAttrs("aria-label").Matching(regexp.MustCompile(`^(Done|To do)$`)).OnElements("input")
	p.AllowAttrs("tabindex").Matching(regexp.MustCompile(`^0$`)).OnElements("pre")
	p.AllowAttrs("align").Matching(regexp.MustCompile(`^(left|right|center)$`)).OnElements("p", "div", "img", "h1", "h2", "h3")
	p.RequireNoFollowOnFullyQualifiedLinks(true)
	p.RequireNoReferrerOnFullyQualifiedLinks(true)
	return p
})

// headingPrefix keeps ids out of a text from being those of the page.
const headingPrefix = "user-content-"

// headings gives headings their ids.
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
	id := headingPrefix + slug
	if n := h.used[slug]; n > 0 {
		id = fmt.Sprintf("%s-%d", id, n)
	}
	h.used[slug]++
	return []byte(id)
}

// Put implements parser.IDs.
func (h *headings) Put([]byte) {}

// codeBlocks colours the code in a text, and gives the boxes of lists of tasks
// names.
type codeBlocks struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (codeBlocks) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		block := n.(*ast.FencedCodeBlock)
		var code strings.Builder
		for i := range block.Lines().Len() {
			line := block.Lines().At(i)
			code.Write(line.Value(source))
		}
		_, _ = w.WriteString(`<pre class="chroma" tabindex="0"><code>`) // long lines are scrolled by keys too
		if err := colour(w, "x."+string(block.Language(source)), string(block.Language(source)), code.String()); err != nil {
			return ast.WalkStop, err
		}
		_, _ = w.WriteString("</code></pre>\n")
		return ast.WalkContinue, nil
	})
	r.Register(tasks.KindTaskCheckBox, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		box := `<input disabled="" type="checkbox" aria-label="To do"> `
		if n.(*tasks.TaskCheckBox).IsChecked {
			box = `<input checked="" disabled="" type="checkbox" aria-label="Done"> `
		}
		_, _ = w.WriteString(box)
		return ast.WalkContinue, nil
	})
}
