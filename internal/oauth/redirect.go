package oauth

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"svc/internal/errs"
)

const (
	maxRedirect  = 2048
	maxRedirects = 50
)

// forbiddenSchemes are URI schemes that browsers execute, read locally or pass to
// other programs.
var forbiddenSchemes = []string{"javascript", "data", "vbscript", "file", "blob", "about", "filesystem", "view-source", "ws", "wss", "mailto", "tel", "urn"}

// parseRedirects parses redirect URIs, one per line. Invalid.
func parseRedirects(text string) ([]string, error) {
	list := []string{}
	for _, line := range strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		line = strings.TrimSpace(line)
		if line == "" || slices.Contains(list, line) {
			continue
		}
		if err := checkRedirect(line); err != nil {
			return nil, err
		}
		list = append(list, line)
	}
	switch {
	case len(list) == 0:
		return nil, errs.InvalidField("redirect_uri", "can't be blank")
	case len(list) > maxRedirects:
		return nil, errs.InvalidField("redirect_uri", "has too many lines (maximum is %d)", maxRedirects)
	}
	return list, nil
}

// checkRedirect validates a redirect URI to register. It refuses what browsers and
// parsers interpret differently: backslashes, control characters, user
// information.
func checkRedirect(text string) error {
	wrong := func(what string) error { return errs.InvalidField("redirect_uri", what) }
	if len(text) > maxRedirect {
		return wrong("is too long (maximum is 2048 characters)")
	}
	if strings.Contains(text, "#") {
		return wrong("cannot contain a fragment.")
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`\"<>^{|}`+"`", r) }) {
		return wrong("must be a valid URI.")
	}
	u, err := url.Parse(text)
	if err != nil {
		return wrong("must be a valid URI.")
	}
	web := u.Scheme == "http" || u.Scheme == "https"
	switch {
	case !u.IsAbs() || u.Opaque != "" || web && u.Hostname() == "":
		return wrong("must be an absolute URI.")
	case u.User != nil:
		return wrong("cannot contain a user.")
	case slices.Contains(forbiddenSchemes, u.Scheme):
		return wrong("is forbidden by the server.")
	}
	return nil
}

// allowedRedirect reports whether the URI of a request is registered. URIs must be
// identical; only the port of a loopback address may differ (RFC 8252), because
// native applications listen on any port. That does not apply to host names such
// as localhost.
func allowedRedirect(registered []string, asked string) bool {
	if asked == "" || len(asked) > maxRedirect {
		return false
	}
	if slices.Contains(registered, asked) {
		return true
	}
	rest, ok := withoutLoopbackPort(asked)
	if !ok || checkRedirect(asked) != nil {
		return false
	}
	return slices.ContainsFunc(registered, func(r string) bool {
		known, ok := withoutLoopbackPort(r)
		return ok && known == rest
	})
}

// withoutLoopbackPort removes the port from a URL such as
// http://127.0.0.1:1234/path; ok is false if the host is not a loopback address.
func withoutLoopbackPort(text string) (rest string, ok bool) {
	after, ok := strings.CutPrefix(text, "http://")
	if !ok {
		return "", false
	}
	end := strings.IndexAny(after, "/?")
	if end < 0 {
		end = len(after)
	}
	authority, tail := after[:end], after[end:]
	host, port := authority, ""
	if at := strings.LastIndexByte(authority, ':'); at >= 0 && !strings.HasSuffix(authority, "]") {
		host, port = authority[:at], authority[at+1:]
		if port == "" || len(port) > 5 || strings.Trim(port, "0123456789") != "" {
			return "", false
		}
	}
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	if err != nil || !addr.IsLoopback() || addr.Zone() != "" || addr.Is6() != strings.HasPrefix(host, "[") || addr.Is4In6() {
		return "", false
	}
	return "http://" + host + tail, true
}

// withQuery adds parameters to a redirect URI and keeps its own query unchanged.
func withQuery(uri string, values url.Values) string {
	join := "?"
	if strings.Contains(uri, "?") {
		join = "&"
		if strings.HasSuffix(uri, "?") || strings.HasSuffix(uri, "&") {
			join = ""
		}
	}
	return uri + join + values.Encode()
}
