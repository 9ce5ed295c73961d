package config

import (
	"errors"
	"regexp"
	"strings"

	"svc/internal/re2"
)

var regexpPattern = regexp.MustCompile(`(?s)^/(.*)/([ismU]*)$`)

// Regexp parses a pattern of the CI file: /expression/flags, with the flags i, s, m and U,
// in RE2 syntax.
func Regexp(in string) (*regexp.Regexp, error) {
	body, _, err := checkPattern(in)
	if err != nil {
		return nil, err
	}
	return regexp.Compile(body)
}

// looksLikePattern reports whether a text is enclosed in slashes.
func looksLikePattern(in string) bool { return regexpPattern.MatchString(in) }

// checkPattern returns the pattern in the syntax of package regexp and its number of
// steps, without compiling it.
func checkPattern(in string) (body string, steps int, err error) {
	m := regexpPattern.FindStringSubmatch(in)
	if m == nil {
		return "", 0, errors.New("a pattern must be enclosed in slashes")
	}
	body = strings.ReplaceAll(m[1], `\/`, "/")
	if m[2] != "" {
		body = "(?" + m[2] + ")" + body
	}
	steps, err = re2.Steps(body)
	return body, steps, err
}

// storedPattern is a pattern of a condition. Small patterns are kept compiled, so that the
// memory stays proportional to the file.
type storedPattern struct {
	body     string
	compiled *regexp.Regexp
}

func newPattern(in string) (*storedPattern, error) {
	body, steps, err := checkPattern(in)
	if err != nil {
		return nil, err
	}
	p := &storedPattern{body: body}
	if steps > 16+2*len(body) {
		return p, nil
	}
	p.compiled, err = regexp.Compile(body)
	return p, err
}

func (p *storedPattern) match(in string) bool {
	re := p.compiled
	if re == nil {
		var err error
		if re, err = regexp.Compile(p.body); err != nil {
			return false
		}
	}
	return re.MatchString(in)
}
