package pages

import (
	"net/netip"
	"net/url"
	"strings"

	"svc/internal/errs"

	"golang.org/x/net/idna"
)

// maxName is the maximum length of a domain name.
const maxName = 253

// domainName checks the name of a new domain and returns it in its stored form.
func (s *Service) domainName(wrong errs.Fields, text string) string {
	name := lookedUp(text)
	ours := s.Place.Host()
	external := ""
	if u, err := url.Parse(s.Place.External); err == nil {
		external = strings.ToLower(u.Hostname())
	}
	switch {
	case strings.TrimSpace(text) == "":
		wrong.Set("domain", "can't be blank")
	case !hostname(name):
		wrong.Set("domain", "is not a valid name of a host")
	case ours != "" && (name == ours || strings.HasSuffix(name, "."+ours)), name == external:
		wrong.Set("domain", "*."+ours+" is a reserved name")
	}
	return name
}

// lookedUp returns a domain name in its stored form: lower case, with
// international names in ASCII (Punycode).
func lookedUp(text string) string {
	name := strings.ToLower(strings.TrimSuffix(strings.TrimSpace(text), "."))
	if ascii, err := idna.Lookup.ToASCII(name); err == nil {
		return ascii
	}
	return strings.ToValidUTF8(strings.ReplaceAll(name, "\x00", ""), "")
}

// hostname reports whether a name is a valid DNS name with more than one label
// and not an IP address.
func hostname(name string) bool {
	if len(name) > maxName || !strings.Contains(name, ".") {
		return false
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return false
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") ||
			strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return strings.Trim(labels[len(labels)-1], "0123456789") != ""
}
