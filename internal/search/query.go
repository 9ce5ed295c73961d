package search

import (
	"path"
	"regexp"
	"strings"
	"unicode/utf8"

	"svc/internal/codesearch"
	"svc/internal/errs"
	"svc/internal/repo"
)

// MaxText is the number of characters that a search may have.
const MaxText = 4096

// checkText refuses what cannot be searched for. Invalid.
func checkText(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return errs.Invalid("search is empty")
	case utf8.RuneCountInString(text) > MaxText:
		return errs.Invalid("search is too long (maximum is %d characters)", MaxText)
	}
	return nil
}

// maxFilters is the number of path filters in a search.
const maxFilters = 16

// pathFilter is a condition on the path of a file.
type pathFilter struct {
	name, value string // filename, path or extension; * is any text
	not         bool
}

// fileQuery is a search in files: a text, and conditions on paths.
type fileQuery struct {
	text      string
	filters   []pathFilter
	languages []codesearch.Language
	exact     bool // a and A are different
}

// onIndex reports whether only the index can answer the query.
func (q fileQuery) onIndex() bool { return len(q.languages) > 0 || q.exact }

// parseCode parses a search in files, with the filters lang: and case:. The text of a
// regular expression keeps its spaces. Invalid.
func (s *Service) parseCode(q Query) (fileQuery, error) {
	parsed, err := parseFiles(q.Text)
	if err != nil {
		return parsed, err
	}
	words, found := parsed.text, false
	var rest []string
	for word := range strings.FieldsSeq(words) {
		name, value, ok := strings.Cut(word, ":")
		if name == "case" && (value == "yes" || value == "no") {
			parsed.exact, found = value == "yes", true
			continue
		}
		name, not := strings.CutPrefix(name, "-")
		if !ok || value == "" || name != "lang" {
			rest = append(rest, word)
			continue
		}
		found = true
		if len(parsed.filters)+len(parsed.languages) >= maxFilters {
			return parsed, errs.Invalid("search has more than %d filters", maxFilters)
		}
		language := s.Repos.Git.FindLanguage(value)
		if language == "" {
			return parsed, errs.Invalid("The language %s is not known.", value)
		}
		parsed.languages = append(parsed.languages, codesearch.Language{Name: language, Not: not})
	}
	if found {
		parsed.text = strings.Join(rest, " ")
	}
	return parsed, nil
}

// parseFiles splits a search into its text and its filters: filename:, path: (or file:)
// and extension:, with - in front to exclude files.
func parseFiles(search string) (q fileQuery, err error) {
	var words []string
	for word := range strings.FieldsSeq(search) {
		name, value, ok := strings.Cut(word, ":")
		name, not := strings.CutPrefix(name, "-")
		if name == "file" { // as exact code search calls it
			name = "path"
		}
		switch {
		case !ok || value == "" || name != "filename" && name != "path" && name != "extension":
			words = append(words, word)
		case len(q.filters) == maxFilters:
			return q, errs.Invalid("search has more than %d filters", maxFilters)
		default:
			q.filters = append(q.filters, pathFilter{name, value, not})
		}
	}
	q.text = strings.Join(words, " ")
	if len(q.filters) == 0 {
		q.text = strings.TrimSpace(search) // with all spaces, as they are in a line
	}
	return q, nil
}

// filter returns the search of the query in one repository.
func (q fileQuery) filter(context int) repo.GrepFilter {
	f := repo.GrepFilter{Text: q.text, Context: context}
	if len(q.filters) == 0 {
		return f
	}
	matches := make([]func(string) bool, len(q.filters))
	for i, one := range q.filters {
		matches[i] = one.match()
		if f.Paths == nil && !one.not { // git skips all other files
			f.Paths = []string{one.pattern()}
		}
	}
	f.Keep = func(path string) bool {
		for i, one := range q.filters {
			if matches[i](path) == one.not {
				return false
			}
		}
		return true
	}
	return f
}

// pattern returns the filter as a pattern of whole paths.
func (f pathFilter) pattern() string {
	switch f.name {
	case "extension":
		return "*." + strings.TrimPrefix(f.value, ".")
	case "path":
		return "*" + f.value + "*"
	}
	return "*" + f.value
}

// expr returns the filter as a regular expression of whole paths.
func (f pathFilter) expr() string {
	quoted := regexp.QuoteMeta(f.value)
	switch {
	case f.name == "extension":
		return `\.` + strings.ReplaceAll(regexp.QuoteMeta(strings.TrimPrefix(f.value, ".")), `\*`, `.*`) + `$`
	case f.name == "path":
		return strings.ReplaceAll(quoted, `\*`, `.*`)
	case strings.Contains(f.value, "/"):
		return strings.ReplaceAll(quoted, `\*`, `.*`) + `$`
	}
	return strings.ReplaceAll(quoted, `\*`, `[^/]*`) + `$`
}

// match returns the filter as a function. A filename matches the name of the file or the
// end of the name, a path matches a part of the path.
func (f pathFilter) match() func(string) bool {
	expr := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimPrefix(f.value, ".")), `\*`, `.*`)
	switch f.name {
	case "extension":
		expr = `\.` + expr + `$`
	case "path":
		expr = strings.ReplaceAll(regexp.QuoteMeta(f.value), `\*`, `.*`)
	default:
		expr = strings.ReplaceAll(regexp.QuoteMeta(f.value), `\*`, `.*`) + `$`
	}
	re := regexp.MustCompile(`(?is)` + expr) // quoted text always compiles
	if f.name != "filename" {
		return re.MatchString
	}
	return func(file string) bool {
		if strings.Contains(f.value, "/") {
			return re.MatchString(file)
		}
		return re.MatchString(path.Base(file))
	}
}

// Terms returns the texts that results of a search contain, for pages that mark them:
// the whole text without filters, then its words.
func Terms(text string) []string {
	q, err := parseFiles(text)
	if err != nil || q.text == "" {
		return nil
	}
	const most = 16
	terms := []string{strings.ToLower(q.text)}
	for word := range strings.FieldsSeq(terms[0]) {
		if len(terms) < most && word != terms[0] {
			terms = append(terms, word)
		}
	}
	return terms
}
