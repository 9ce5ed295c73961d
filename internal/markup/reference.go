package markup

import (
	"html"
	"regexp"
	"strings"
)

// Kind is the type of the target of a reference.
type Kind string

// The kinds of references and their syntax.
const (
	Issue        Kind = "issue"         // #1, project#1, group/project#1
	MergeRequest Kind = "merge_request" // !2, group/project!2
	User         Kind = "user"          // @name
	Label        Kind = "label"         // ~name, ~"two words", ~7
	Milestone    Kind = "milestone"     // %name, %"two words", %7
	Commit       Kind = "commit"        // an id of 7 digits or more, group/project@id
	Snippet      Kind = "snippet"       // $3, group/project$3
)

// Reference is a reference in a text, such as group/project#1 or @name.
type Reference struct {
	Kind    Kind
	Project string // path, or name in the namespace of the text; empty for the project of the text
	Name    string
}

// Target is what a reference links to.
type Target struct {
	URL   string
	Title string
	Text  string // link text; empty for the reference as written
	Color string // of a label, #rrggbb; shown as a dot beside the text
}

// maxReferences is how many references of a text are resolved.
const maxReferences = 200

// references matches references of all kinds. The character before a reference must
// not be part of a name or URL.
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

// split splits a text into references and the text between them.
func split(source string) []piece {
	var list []piece
	done := 0
	for from := 0; from < len(source); {
		// The expression is run only on words that can be references: most cannot.
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

// candidate returns the start of the first word at or after an offset that can be a
// reference: it has a sign before a name or number, or seven consecutive hexadecimal
// digits. The space before the word is included, parts of names before from are not.
// It returns -1 if there is no such word.
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

// isName reports whether a byte can start a name. All bytes that are not ASCII can.
func isName(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || c >= 0x80
}

// refer replaces the references in sanitized HTML with links. In sanitized HTML,
// each < starts a tag and each > ends one. Code and existing links are not changed.
func refer(safe string, resolve func([]Reference) (map[Reference]Target, error)) (string, error) {
	var parts []piece // tags are plain pieces: they contain no references
	var asked []Reference
	seen := map[Reference]bool{}
	inside := 0 // open elements in which references are not searched
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

// step returns 1 for the start tag, and -1 for the end tag, of an element in which
// references are not searched, and otherwise 0.
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
