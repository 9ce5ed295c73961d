package markup

import (
	"regexp"
	"sync"

	"github.com/microcosm-cc/bluemonday"
)

// rendered are the classes of the elements that this package renders. The others
// belong to the page.
const rendered = `chroma|c|gd|gh|gi|k|kt|m|na|nf|nt|s|math|mermaid|toc|footnotes|footnote-ref|footnote-backref|` +
	`markdown-alert( markdown-alert-(note|tip|important|caution|warning))?|markdown-alert-title`

// policy returns the sanitizer policy for texts of users: no scripts, styles, forms
// or frames.
//
// It is bluemonday.UGCPolicy without IDs: scripts of the page find elements by ID,
// and must not find those of a text. Only IDs with HeadingPrefix are kept.
var policy = sync.OnceValue(func() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowAttrs("dir").Matching(bluemonday.Direction).Globally()
	p.AllowAttrs("lang").Matching(regexp.MustCompile(`^[a-zA-Z]{2,20}(-[a-zA-Z0-9]{1,20})*$`)).Globally()
	p.AllowAttrs("title").Matching(bluemonday.Paragraph).Globally()
	p.AllowAttrs("id").Matching(regexp.MustCompile(`^` + HeadingPrefix + `\S*$`)).Globally()
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^(`+rendered+`)$`)).OnElements("span", "pre", "code", "div", "a", "p")
	p.AllowStandardURLs()

	p.AllowElements("article", "aside", "figure", "section", "summary", "h1", "h2", "h3", "h4", "h5", "h6", "hgroup",
		"br", "div", "hr", "p", "span", "wbr", "abbr", "acronym", "cite", "code", "dfn", "em", "figcaption", "mark", "s", "samp", "strong", "sub", "sup", "var",
		"b", "i", "pre", "small", "strike", "tt", "u", "rp", "rt", "ruby")
	p.AllowAttrs("open").Matching(regexp.MustCompile(`(?i)^(|open)$`)).OnElements("details")
	p.AllowAttrs("cite").OnElements("blockquote", "q")
	p.AllowAttrs("cite").Matching(bluemonday.Paragraph).OnElements("del", "ins")
	p.AllowAttrs("datetime").Matching(bluemonday.ISO8601).OnElements("time", "del", "ins")
	p.AllowAttrs("dir").Matching(bluemonday.Direction).OnElements("bdi", "bdo")
	p.AllowAttrs("value", "min", "max", "low", "high", "optimum").Matching(bluemonday.Number).OnElements("meter")
	p.AllowAttrs("value", "max").Matching(bluemonday.Number).OnElements("progress")
	p.AllowLists()
	p.AllowTables()

	p.AllowAttrs("href").OnElements("a", "area")
	p.AllowAttrs("name").Matching(regexp.MustCompile(`^([\p{L}\p{N}_-]+)$`)).OnElements("map")
	p.AllowAttrs("alt").Matching(bluemonday.Paragraph).OnElements("area")
	p.AllowAttrs("coords").Matching(regexp.MustCompile(`^([0-9]+,)+[0-9]+$`)).OnElements("area")
	p.AllowAttrs("rel").Matching(bluemonday.SpaceSeparatedTokens).OnElements("area")
	p.AllowAttrs("shape").Matching(regexp.MustCompile(`(?i)^(default|circle|rect|poly)$`)).OnElements("area")
	p.AllowAttrs("usemap").Matching(regexp.MustCompile(`(?i)^#[\p{L}\p{N}_-]+$`)).OnElements("img")
	p.AllowImages()

	p.AllowAttrs("data-math-style").Matching(regexp.MustCompile(`^(inline|display)$`)).OnElements("code", "pre")
	p.AllowAttrs("type", "checked", "disabled").Matching(regexp.MustCompile(`^(checkbox|checked|disabled|)$`)).OnElements("input")
	p.AllowAttrs("aria-label").Matching(regexp.MustCompile(`^(Done|To do)$`)).OnElements("input")
	p.AllowAttrs("tabindex").Matching(regexp.MustCompile(`^0$`)).OnElements("pre")
	p.AllowAttrs("align").Matching(regexp.MustCompile(`^(left|right|center)$`)).OnElements("p", "div", "img", "h1", "h2", "h3")
	p.RequireNoFollowOnFullyQualifiedLinks(true)
	p.RequireNoReferrerOnFullyQualifiedLinks(true)
	return p
})
