package app

import (
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"
)

// secretParams are the names of path parameters that open something to whoever
// knows them. Routes must use them for such parameters.
var secretParams = []string{"{token}", "{secret}"}

// pathMask hides secrets in the paths of log lines. It knows them by the
// patterns of the routes, not by their looks. A path is masked also when the
// rest of it, or the method, fits no route.
type pathMask []*regexp.Regexp

// masked stands for a secret and all that follows it.
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

// newPathMask makes a mask of route patterns. Parameters before the secret may
// hold slashes, because log lines have paths decoded.
func newPathMask(patterns []string) pathMask {
	var m pathMask
	param := regexp.MustCompile(`\\\{[^}]*\\\}`)
	for _, pattern := range patterns {
		at := len(pattern)
		for _, p := range secretParams {
			if i := strings.Index(pattern, p); i >= 0 {
				at = min(at, i)
			}
		}
		before := param.ReplaceAllString(regexp.QuoteMeta(pattern[:at]), `.+?`)
		if !slices.ContainsFunc(m, func(r *regexp.Regexp) bool { return r.String() == "^"+before }) {
			m = append(m, regexp.MustCompile("^"+before))
		}
	}
	return m
}

// hide gives a path without its secrets.
func (m pathMask) hide(path string) string {
	for _, r := range m {
		if at := r.FindStringIndex(path); at != nil && at[1] < len(path) {
			return path[:at[1]] + masked
		}
	}
	return path
}

// hideIn masks the path of a log line.
func (m pathMask) hideIn(line slog.Record) slog.Record {
	found := false
	line.Attrs(func(a slog.Attr) bool {
		found = a.Key == "path" && m.hide(a.Value.String()) != a.Value.String()
		return !found
	})
	if !found {
		return line
	}
	clean := slog.NewRecord(line.Time, line.Level, line.Message, line.PC)
	line.Attrs(func(a slog.Attr) bool {
		if a.Key == "path" {
			a.Value = slog.StringValue(m.hide(a.Value.String()))
		}
		clean.AddAttrs(a)
		return true
	})
	return clean
}
