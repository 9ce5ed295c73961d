package markup

import (
	"html"
	"regexp"
	"strings"
)

// Kind is what a reference is to.
type Kind string

// The kinds of references, and how they are written.
const (
	Issue        Kind = "issue"         // #1, project#1, group/project#1
	MergeRequest Kind = "merge_request" // !2, group/project!2
	User         Kind = "user"          // @name
	Label        Kind = "label"         // ~name, ~"two words", ~7
	Milestone    Kind = "milestone"     // %name, %"two words", %7
	Commit       Kind = "commit"        // an id of 7 digits or more, group/project@id
	Snippet      Kind = "snippet"       // $3, group/project$3
)

// Reference is a short name of a thing in a text.
type Reference struct {
	Kind    Kind
	Project string // the path before it, or the name of one beside that of the text; empty for this one
	Name    string
}

// Target is what a reference stands for.
type Target struct {
	URL   string
	Title string
	Text  string // what is shown; what was written unless given
	Color string // of a label, #rrggbb; it is shown beside the text
}

// maxReferences is how many references of a text are looked at.
const maxReferences = 200

// references finds all kinds at once. Before a reference stands nothing that
// could be a part of a name or of an address.
var references = regexp.MustCompile(`(^|[^\w/&@#!~%.-])` +
	`(?:([\w][\w.-]*(?:/[\w][\w.-]*)*)?([#!$])(\d{1,18})\b` + // 2 project, 3 sign, 4 number
	`|@([a-zA-Z0-9_][\w.-]*(?:/[\w.-]+)*)` + // 5 user
	`|([~%])(?:"([^"\n]{1,255})"|([\pL\pN_][\pL\pN_?&.:-]*))` + // 6 sign, 7 quoted, 8 word
	`|(?:([\w][\w.-]*(?:/[\w][\w.-]*)*)@)?([0-9a-f]{7,40})\b)`) // 9 project, 10 commit

// piece is a part of a text: plain, or a reference.
type piece struct {
	text string
	ref  *Reference
}

// split takes a text apart.
func split(source string) []piece {
	var list []piece
	done := 0
	for from := 0; from < len(source); {
		// The expression looks only at words that can be references: most are not.
		word := candidate(source, from)
		if word < 0 {
			break
		}
		at := references.FindStringSubmatchIndex(source[word:])
		if at == nil {
			break
		}
		group := func(n int) string {
			if at[2*n] < 0 {
				return ""
			}
			return source[word+at[2*n] : word+at[2*n+1]]
		}
		start, end := word+at[3], word+at[1]
		ref := Reference{Project: group(2)}
		switch {
		case group(4) != "":
			ref.Kind, ref.Name = Issue, group(4)
			switch group(3) {
			case "!":
				ref.Kind = MergeRequest
			case "$":
				ref.Kind = Snippet
			}
		case group(5) != "":
			ref.Kind, ref.Name = User, group(5)
		case group(6) != "":
			ref.Kind, ref.Name = Label, group(7)+group(8)
			if group(6) == "%" {
				ref.Kind = Milestone
			}
		default:
			ref.Kind, ref.Project, ref.Name = Commit, group(9), group(10)
		}
		// A full stop at the end belongs to the sentence.
		if ref.Kind == User || group(8) != "" {
			trimmed := strings.TrimRight(ref.Name, ".?:-")
			end -= len(ref.Name) - len(trimmed)
			ref.Name = trimmed
		}
		list = append(list, piece{text: source[done:start]}, piece{text: source[start:end], ref: &ref})
		done, from = end, end
	}
	return append(list, piece{text: source[done:]})
}

// candidate returns where the first word of a text starts, from an offset on, that
// can be a reference: it has a sign before a name or number, or seven hexadecimal
// digits in a row. The space before the word is included, and parts of names before
// from are not. It returns -1 without such a word.
func candidate(source string, from int) int {
	hex := 0
	for i := from; i < len(source); i++ {
		c := source[i]
		found := false
		switch {
		case '0' <= c && c <= '9' || 'a' <= c && c <= 'f':
			if hex++; hex < 7 {
				continue
			}
			found = true
		case i+1 == len(source):
		case c == '#' || c == '!' || c == '$':
			found = '0' <= source[i+1] && source[i+1] <= '9'
		case c == '@':
			found = isName(source[i+1])
		case c == '~' || c == '%':
			found = source[i+1] == '"' || isName(source[i+1])
		}
		hex = 0
		if found {
			return max(from, from+strings.LastIndexByte(source[from:i], ' '))
		}
	}
	return -1
}

// isName reports whether a byte can begin a name; any character that is not ASCII can.
func isName(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || c >= 0x80
}

// refer makes links of the references in HTML that has been cleaned: there a <
// begins a tag, and a > ends it. Code, and what is a link already, is left.
func refer(safe string, resolve func([]Reference) (map[Reference]Target, error)) (string, error) {
	var parts []piece // tags have no text of their own to look at, so they are plain
	var asked []Reference
	seen := map[Reference]bool{}
	inside := 0 // elements in which nothing is looked for
	for safe != "" {
		if safe[0] == '<' {
			end := strings.IndexByte(safe, '>') + 1
			if end == 0 {
				end = len(safe)
			}
			inside += step(safe[:end])
			parts = append(parts, piece{text: safe[:end]})
			safe = safe[end:]
			continue
		}
		end := strings.IndexByte(safe, '<')
		if end < 0 {
			end = len(safe)
		}
		words := safe[:end]
		safe = safe[end:]
		if inside > 0 || len(asked) >= maxReferences {
			parts = append(parts, piece{text: words})
			continue
		}
		for _, p := range split(html.UnescapeString(words)) {
			p.text = html.EscapeString(p.text)
			parts = append(parts, p)
			if p.ref != nil && !seen[*p.ref] {
				seen[*p.ref], asked = true, append(asked, *p.ref)
			}
		}
	}
	if len(asked) > maxReferences {
		asked = asked[:maxReferences]
	}
	found := map[Reference]Target{}
	if len(asked) > 0 {
		var err error
		if found, err = resolve(asked); err != nil {
			return "", err
		}
	}
	var out strings.Builder
	for _, p := range parts {
		target, ok := Target{}, false
		if p.ref != nil {
			target, ok = found[*p.ref]
		}
		if !ok {
			out.WriteString(p.text)
			continue
		}
		shown := p.text
		if target.Text != "" {
			shown = html.EscapeString(target.Text)
		}
		out.WriteString(`<a href="` + html.EscapeString(target.URL) + `" class="gfm gfm-` + string(p.ref.Kind))
		if target.Color != "" {
			out.WriteString(" chip")
			shown = Dot(target.Color) + shown
		}
		out.WriteString(`"`)
		if target.Title != "" {
			out.WriteString(` title="` + html.EscapeString(target.Title) + `"`)
		}
		out.WriteString(">" + shown + "</a>")
	}
	return out.String(), nil
}

// Dot returns a circle in the color of a label. The color is an attribute of an
// image because the content security policy forbids inline styles.
func Dot(color string) string {
	return `<svg viewBox="0 0 8 8" aria-hidden="true"><circle cx="4" cy="4" r="4" fill="` + html.EscapeString(color) + `"/></svg>`
}

// step is 1 for a tag that begins something in which no references are looked
// for, and -1 for one that ends it.
func step(tag string) int {
	name := strings.TrimPrefix(tag, "<")
	way := 1
	if rest, ok := strings.CutPrefix(name, "/"); ok {
		name, way = rest, -1
	}
	if end := strings.IndexAny(name, " />"); end >= 0 {
		name = name[:end]
	}
	switch name {
	case "a", "code", "pre":
		return way
	}
	return 0
}
