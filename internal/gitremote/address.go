package gitremote

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"svc/internal/errs"
)

// Address is the URL of a repository on another server, with its credentials.
type Address struct {
	URL      string // without credentials
	User     string
	Password string
}

// SSH reports whether the repository is accessed over SSH.
func (a Address) SSH() bool { return strings.HasPrefix(a.URL, "ssh://") }

const (
	maxURL        = 2048
	maxCredential = 1024
)

const otherwise = "must be a URL that starts with http://, https://, ssh:// or git://"

// scpLike matches the scp-like syntax of SSH URLs, as in git-clone(1). Its path is
// used as the path of an ssh:// URL: forges treat both as the path of a project.
var scpLike = regexp.MustCompile(`^([A-Za-z0-9._][A-Za-z0-9._-]*)@([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]):/*([^/\s].*)$`)

// ParseAddress parses the URL of a repository, which may contain credentials, or an
// address such as git@example.org:group/project.git. Errors are messages for the
// user, and contain no part of the URL.
func ParseAddress(text string) (Address, error) {
	text = strings.TrimSpace(text)
	if short := scpLike.FindStringSubmatch(text); short != nil {
		text = "ssh://" + short[1] + "@" + short[2] + "/" + short[3]
	}
	a, err := parse(text)
	if err == nil && strings.HasPrefix(a.URL, "git://") && (a.User != "" || a.Password != "") {
		return Address{}, errs.Invalid("must not contain credentials: the git protocol has none")
	}
	return a, err
}

func parse(text string) (Address, error) {
	if len(text) > maxURL+2*maxCredential {
		return Address{}, errs.Invalid("is too long (maximum is %d characters)", maxURL)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return Address{}, errs.Invalid("must not contain spaces or control characters")
	}
	if strings.HasPrefix(text, "-") {
		return Address{}, errs.Invalid(otherwise)
	}
	u, err := url.Parse(text)
	if err != nil || !slices.Contains([]string{"http", "https", "ssh", "git"}, u.Scheme) || u.Opaque != "" {
		return Address{}, errs.Invalid(otherwise)
	}
	a := Address{User: u.User.Username()}
	a.Password, _ = u.User.Password()
	u.User = nil
	switch path, err := url.PathUnescape(u.EscapedPath()); {
	case u.Hostname() == "" || strings.HasPrefix(u.Hostname(), "-"):
		return Address{}, errs.Invalid("must contain the name of a host")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(text, "#"):
		return Address{}, errs.Invalid("must not contain a query or a fragment")
	case err != nil || hasControl(path) || hasControl(u.Hostname()) || hasControl(a.User) || hasControl(a.Password):
		return Address{}, errs.Invalid("must not contain spaces or control characters")
	case strings.Trim(path, "/") == "":
		return Address{}, errs.Invalid("must contain the path of a repository")
	case len(a.User) > maxCredential || len(a.Password) > maxCredential:
		return Address{}, errs.Invalid("has a username or password that is too long (maximum is %d characters)", maxCredential)
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), strings.TrimRight(u.RawPath, "/")
	if a.URL = u.String(); len(a.URL) > maxURL {
		return Address{}, errs.Invalid("is too long (maximum is %d characters)", maxURL)
	}
	return a, nil
}

func hasControl(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}
