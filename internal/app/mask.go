package app

import (
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"
)

// secretParams are the names of path parameters that are secrets. Routes must use
// them for such parameters.
var secretParams = []string{"{token}", "{secret}"}

// pathMask masks secrets in the paths of log lines: the secret parameters of
// routes and, in all paths, values that look like secrets (hideValues).
type pathMask struct {
	routes []*regexp.Regexp
	known  *regexp.Regexp // tokens with a prefix
}

// masked replaces a secret and everything after it.
const masked = "[secret]"

// secretRoutes lists the patterns of routes with a secret in the path.
func secretRoutes(routers ...chi.Routes) []string {
	var list []string
	for _, router := range routers {
		_ = chi.Walk(router, func(_, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
			if slices.ContainsFunc(secretParams, func(p string) bool { return strings.Contains(pattern, p) }) && !slices.Contains(list, pattern) {
				list = append(list, pattern)
			}
			return nil
		})
	}
	return list
}

// newPathMask returns a mask for route patterns. Parameters before the secret may
// contain slashes, because paths in log lines are decoded. service is the prefix
// of the tokens of the instance: svcpat-….
func newPathMask(service string, patterns []string) *pathMask {
	m := &pathMask{known: regexp.MustCompile(`(?i)\b((?:gl|` + regexp.QuoteMeta(service) + `)[a-z]{1,5}[-_])[\w-]{16,}`)}
	param := regexp.MustCompile(`\\\{[^}]*\\\}`)
	for _, pattern := range patterns {
		at := len(pattern)
		for _, p := range secretParams {
			if i := strings.Index(pattern, p); i >= 0 {
				at = min(at, i)
			}
		}
		before := param.ReplaceAllString(regexp.QuoteMeta(pattern[:at]), `.+?`)
		if !slices.ContainsFunc(m.routes, func(r *regexp.Regexp) bool { return r.String() == "^"+before }) {
			m.routes = append(m.routes, regexp.MustCompile("^"+before))
		}
	}
	return m
}

// hide returns a path without its secrets.
func (m *pathMask) hide(path string) string {
	for _, r := range m.routes {
		if at := r.FindStringIndex(path); at != nil && at[1] < len(path) {
			return hideValues(path[:at[1]]) + masked
		}
	}
	if strings.ContainsAny(path, "-_") {
		path = m.known.ReplaceAllString(path, "${1}"+masked)
	}
	return hideValues(path)
}

// namedValue matches a parameter whose name indicates a secret. If the client
// escaped the question mark, the query is part of the path.
var namedValue = regexp.MustCompile(`(?i)((?:token|secret|password|passwd|key|code|state|signature|credential)s?(?:=|%3d))[^&;/]+`)

// userInfo is the user and password of a URL within a path.
var userInfo = regexp.MustCompile(`(:/{1,2})[^/@]+@`)

// hideValues masks everything in a path that looks like a secret.
func hideValues(path string) string {
	if strings.Contains(path, "=") || strings.Contains(path, "%3") {
		path = namedValue.ReplaceAllString(path, "${1}"+masked)
	}
	if strings.Contains(path, "@") {
		path = userInfo.ReplaceAllString(path, "${1}"+masked+"@")
	}
	var out strings.Builder
	done := 0
	for at := 0; at < len(path); {
		if !alphanumeric(path[at]) {
			at++
			continue
		}
		end := at
		for end < len(path) && alphanumeric(path[end]) {
			end++
		}
		if looksSecret(path[at:end]) {
			out.WriteString(path[done:at] + masked)
			done = end
		}
		at = end
	}
	if done == 0 {
		return path
	}
	return out.String() + path[done:]
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// looksSecret reports whether a word of letters and digits looks like a token: at
// least 20 characters, with a digit or only uppercase. Git object IDs, with 40 or
// 64 lowercase hexadecimal digits, are not secrets.
func looksSecret(word string) bool {
	if len(word) < 20 {
		return false
	}
	hex, digits, capitals := true, false, true
	for _, c := range []byte(word) {
		digit := c >= '0' && c <= '9'
		digits = digits || digit
		hex = hex && (digit || c >= 'a' && c <= 'f')
		capitals = capitals && (digit || c >= 'A' && c <= 'Z')
	}
	if hex && (len(word) == 40 || len(word) == 64) {
		return false
	}
	return digits || capitals
}

// hideIn masks the path of a log line.
func (m *pathMask) hideIn(line slog.Record) slog.Record {
	var hidden string
	line.Attrs(func(a slog.Attr) bool {
		if a.Key != "path" {
			return true
		}
		if path := a.Value.String(); m.hide(path) != path {
			hidden = m.hide(path)
		}
		return false
	})
	if hidden == "" {
		return line
	}
	clean := slog.NewRecord(line.Time, line.Level, line.Message, line.PC)
	line.Attrs(func(a slog.Attr) bool {
		if a.Key == "path" {
			a.Value = slog.StringValue(hidden)
		}
		clean.AddAttrs(a)
		return true
	})
	return clean
}
