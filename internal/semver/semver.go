// Package semver parses and compares semantic versions: https://semver.org.
package semver

import (
	"cmp"
	"regexp"
	"strings"
)

// Version is a semantic version.
type Version struct {
	major, minor, patch string // digits without leading zeros
	Pre                 string // "rc1"; empty for a release
}

// Pattern is the default pattern of version tags: vX.Y.Z or X.Y.Z.
const Pattern = `^v?(?P<major>0|[1-9][0-9]*)\.(?P<minor>0|[1-9][0-9]*)\.(?P<patch>0|[1-9][0-9]*)` +
	`(?:-(?P<pre>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+(?P<meta>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?$`

var usual = regexp.MustCompile(Pattern)

// Valid reports whether the text is a semantic version, optionally with
// a leading v.
func Valid(text string) bool {
	_, ok := Parse(text)
	return ok && len(text) <= 255
}

// Parse parses a version such as 1.2.3 or v1.2.3-rc.1. It returns false if text is
// not one.
func Parse(text string) (Version, bool) { return ParseBy(usual, text) }

// ParseBy parses a version with a pattern that has the groups major, minor and
// patch, and optionally pre. It returns false if the text does not match.
func ParseBy(pattern *regexp.Regexp, text string) (Version, bool) {
	found := pattern.FindStringSubmatch(text)
	if found == nil {
		return Version{}, false
	}
	group := func(name string) string {
		if i := pattern.SubexpIndex(name); i >= 0 {
			return found[i]
		}
		return ""
	}
	v := Version{group("major"), group("minor"), group("patch"), group("pre")}
	for _, part := range []*string{&v.major, &v.minor, &v.patch} {
		if *part == "" || strings.Trim(*part, "0123456789") != "" {
			return Version{}, false
		}
		*part = number(*part)
	}
	return v, true
}

func number(digits string) string {
	if n := strings.TrimLeft(digits, "0"); n != "" {
		return n
	}
	return "0"
}

// Compare compares versions by precedence: negative if v is lower than o, 0 if they
// are equal, positive if v is higher.
func (v Version) Compare(o Version) int {
	return cmp.Or(compareNumbers(v.major, o.major), compareNumbers(v.minor, o.minor), compareNumbers(v.patch, o.patch), comparePre(v.Pre, o.Pre))
}

// compareNumbers compares decimal numbers of any length.
func compareNumbers(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// comparePre compares the prerelease identifiers of versions: a release is greater
// than its prereleases, numeric identifiers are less than alphanumeric ones, and
// more identifiers are greater than fewer.
func comparePre(a, b string) int {
	if a == "" || b == "" {
		return cmp.Compare(len(b), len(a))
	}
	left, right := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(left), len(right)) {
		x, y := left[i], right[i]
		xNumber, yNumber := strings.Trim(x, "0123456789") == "", strings.Trim(y, "0123456789") == ""
		order := strings.Compare(x, y)
		switch {
		case xNumber && yNumber:
			order = compareNumbers(number(x), number(y))
		case xNumber:
			order = -1
		case yNumber:
			order = 1
		}
		if order != 0 {
			return order
		}
	}
	return cmp.Compare(len(left), len(right))
}
