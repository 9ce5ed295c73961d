package project

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"svc/internal/errs"
	"svc/internal/user"
)

// pathPattern matches a path, which is part of URLs and file names.
var pathPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

const pathRule = "can contain only letters, digits, '_', '-' and '.'. Cannot start with '-', end in '.git' or end in '.atom'"

// reservedInside are path segments that are used in URLs below a project or group.
var reservedInside = map[string]bool{
	"-": true, "badges": true, "blame": true, "blob": true, "builds": true, "commits": true, "create": true, "create_dir": true,
	"edit": true, "files": true, "find_file": true, "info": true, "new": true, "preview": true, "raw": true, "refs": true,
	"tree": true, "update": true, "wikis": true, "alerts": true, "prometheus": true,
}

// checkPath validates one path segment. top is set for a top-level group, which
// shares its namespace with our own URLs and with usernames.
func checkPath(wrong errs.Fields, path string, top bool) {
	lower := strings.ToLower(path)
	switch {
	case path == "":
		wrong.Set("path", "can't be blank")
	case len(path) > 255:
		wrong.Set("path", "is too long (maximum is 255 characters)")
	case !pathPattern.MatchString(path), strings.HasSuffix(path, "."), strings.HasSuffix(lower, ".git"), strings.HasSuffix(lower, ".atom"),
		strings.Contains(path, ".."):
		wrong.Set("path", pathRule)
	case top && strings.Trim(path, "0123456789") == "":
		// A number would be parsed as an ID.
		wrong.Set("path", "must contain something other than digits")
	// The suffix ".wiki" refers to the repository of a wiki.
	case strings.HasSuffix(lower, ".wiki"), reservedInside[lower], top && user.Reserved(path):
		wrong.Set("path", path+" is a reserved name")
	}
}

func checkName(wrong errs.Fields, name string) {
	switch {
	case strings.TrimSpace(name) == "":
		wrong.Set("name", "can't be blank")
	case utf8.RuneCountInString(name) > 255:
		wrong.Set("name", "is too long (maximum is 255 characters)")
	case strings.ContainsFunc(name, unicode.IsControl), strings.ContainsAny(name, "<>"):
		wrong.Set("name", "can contain only letters, digits, emoji, '_', '.', '+', dashes, or spaces. It must start with a letter, digit, emoji, or '_'.")
	}
}

// checkText validates a display name.
func checkText(wrong errs.Fields, field, text string) {
	switch {
	case strings.TrimSpace(text) == "":
		wrong.Set(field, "can't be blank")
	case utf8.RuneCountInString(text) > 255:
		wrong.Set(field, "is too long (maximum is 255 characters)")
	}
}

func checkDescription(wrong errs.Fields, text string, limit int) {
	if utf8.RuneCountInString(text) > limit {
		wrong.Set("description", "is too long")
	}
}

// latinLetters maps letters that do not decompose to ASCII to their
// transliterations.
var latinLetters = strings.NewReplacer("ß", "ss", "ẞ", "ss", "æ", "ae", "Æ", "ae", "œ", "oe", "Œ", "oe", "ø", "o", "Ø", "o", "ł", "l", "Ł", "l",
	"đ", "d", "Đ", "d", "ð", "d", "Ð", "d", "þ", "th", "Þ", "th", "ħ", "h", "Ħ", "h", "ı", "i", "ŧ", "t", "Ŧ", "t", "ŋ", "ng", "Ŋ", "ng")

// PathFrom derives a path from a name: accents are removed, other characters
// become dashes. The script of the pages does the same.
func PathFrom(name string) string {
	name = latinLetters.Replace(norm.NFKD.String(strings.TrimSpace(name)))
	path := strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Mn, r):
			return -1
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_', r == '-', r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return unicode.ToLower(r)
		}
		return '-'
	}, name)
	path = strings.Trim(path, "-.")
	for strings.Contains(path, "--") {
		path = strings.ReplaceAll(path, "--", "-")
	}
	return path
}

// cleanTopics removes blank and duplicate topics.
func cleanTopics(list []string) []string {
	topics := []string{}
	seen := map[string]bool{}
	for _, name := range list {
		name = strings.TrimSpace(name)
		if name == "" || seen[strings.ToLower(name)] {
			continue
		}
		seen[strings.ToLower(name)] = true
		topics = append(topics, name)
	}
	return topics
}
