package wiki

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"svc/internal/errs"
	"svc/internal/git"
)

// Format is the markup language of a page. Only Markdown is rendered; other
// formats are shown as plain text.
type Format string

// The formats of new pages.
const (
	Markdown Format = "markdown"
	RDoc     Format = "rdoc"
	ASCIIDoc Format = "asciidoc"
	Org      Format = "org"
)

// extensions are the file extensions of pages and their formats. The first extension of
// a format is used for new pages.
var extensions = []struct {
	end    string
	format Format
}{
	{".md", Markdown}, {".markdown", Markdown}, {".mdown", Markdown}, {".mkd", Markdown}, {".mkdn", Markdown},
	{".rdoc", RDoc}, {".asciidoc", ASCIIDoc}, {".adoc", ASCIIDoc}, {".asc", ASCIIDoc}, {".org", Org},
	{".rst", "rst"}, {".textile", "textile"}, {".creole", "creole"}, {".mediawiki", "mediawiki"}, {".wiki", "mediawiki"}, {".txt", "plaintext"},
}

// end returns the file extension of a new page.
func (f Format) end() string {
	for _, e := range extensions {
		if e.format == f {
			return e.end
		}
	}
	return ".md"
}

// splitFile splits the path of a page into its name and format.
func splitFile(file string) (name string, format Format, ok bool) {
	lower := strings.ToLower(file)
	for _, e := range extensions {
		if strings.HasSuffix(lower, e.end) && len(path.Base(file)) > len(e.end) {
			return file[:len(file)-len(e.end)], e.format, true
		}
	}
	return "", "", false
}

// uploads is the directory of attachments.
const uploads = "uploads/"

// pageOf returns the page of a file. ok is false if the file is not a page.
func pageOf(file string) (p Page, ok bool) {
	if strings.HasPrefix(file, uploads) {
		return Page{}, false
	}
	name, format, ok := splitFile(file)
	if !ok || !utf8.ValidString(name) {
		return Page{}, false
	}
	return Page{Slug: slugOf(name), Title: titleOf(name), Format: format, Path: file}, true
}

// slugOf returns the slug of a page, which identifies it in URLs: its title, or the path
// of its file, with hyphens for spaces.
func slugOf(title string) string { return strings.ReplaceAll(title, " ", "-") }

// titleOf returns the title of a page for display.
func titleOf(name string) string { return strings.ReplaceAll(path.Base(name), "-", " ") }

const (
	maxTitle   = 255     // characters of one part
	maxPath    = 1000    // bytes
	maxContent = 5 << 20 // bytes
)

// cleanTitle normalizes a title: it trims spaces from its parts. InvalidField if the text
// cannot be a title.
func cleanTitle(title string) (string, error) {
	var parts []string
	for part := range strings.SplitSeq(strings.Trim(title, "/ "), "/") {
		part = strings.Join(strings.FieldsFunc(part, unicode.IsSpace), " ")
		if utf8.RuneCountInString(part) > maxTitle {
			return "", errs.InvalidField("title", "is too long (maximum is %d characters)", maxTitle)
		}
		parts = append(parts, part)
	}
	clean := strings.Join(parts, "/")
	switch {
	case clean == "":
		return "", errs.InvalidField("title", "can't be blank")
	case !utf8.ValidString(clean), strings.ContainsFunc(clean, unicode.IsControl), git.CheckNewPath(slugOf(clean)) != nil, len(clean) > maxPath,
		strings.HasPrefix(clean+"/", uploads):
		return "", errs.InvalidField("title", "is not a valid page title")
	}
	return clean, nil
}

// titleFor returns the full title of a page that is renamed: a title without a
// directory stays in the current one, and a leading / refers to the root.
func titleFor(was *Page, title string) string {
	dir := path.Dir(was.Slug)
	if strings.Contains(title, "/") || dir == "." {
		return title
	}
	return dir + "/" + title
}

// fileName derives the file name of an attachment from the name that the client
// sent.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-+", r) {
			return '_'
		}
		return r
	}, path.Base(name))
}

// frontMatter splits the front matter, between lines of ---, from a page.
func frontMatter(content string) (fields map[string]string, rest string) {
	fields = map[string]string{}
	body, ok := strings.CutPrefix(content, "---\n")
	if !ok {
		return fields, content
	}
	head, rest, ok := strings.Cut(body, "\n---\n")
	if !ok {
		if head, ok = strings.CutSuffix(strings.TrimRight(body, "\n"), "\n---"); !ok {
			return map[string]string{}, content
		}
	}
	for line := range strings.SplitSeq(head, "\n") {
		name, value, ok := strings.Cut(line, ":")
		name = strings.TrimSpace(name)
		if !ok || name == "" || len(fields) == maxFields || strings.HasPrefix(name, "#") || strings.HasPrefix(name, "-") {
			continue
		}
		fields[name] = unquote(strings.TrimSpace(value))
	}
	return fields, rest
}

// maxFields is the maximum number of front matter fields.
const maxFields = 100

func unquote(value string) string {
	if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
		return value[1 : n-1]
	}
	return value
}

// message returns the default message of a commit to a page.
func message(username, did, title string) string {
	return fmt.Sprintf("%s %s page: %s", username, did, title)
}
