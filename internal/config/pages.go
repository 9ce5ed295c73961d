package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// PagesWarning returns a warning if the host of Pages sites is unsafe or unusable,
// or "" if it is not or Pages is off.
//
// Sites contain code of any user. Browsers let a host set cookies for a domain that
// it shares with another host, and send SameSite cookies with requests between hosts
// of one domain. A site on the domain of the instance can therefore fix the sessions
// of its users and bypass the protection of SameSite cookies.
func (c Config) PagesWarning() string {
	if c.PagesAddr == "" && c.PagesTLSAddr == "" {
		return ""
	}
	instance := hostOf(c.ExternalURL)
	if c.PagesURL == "" {
		if local(instance) {
			return ""
		}
		return "pages_url is not set: Pages sites are reachable on this machine only, below pages.localhost. " +
			"Set it to a domain that is used for nothing else."
	}
	sites := hostOf(c.PagesURL)
	if strings.HasSuffix(instance, "."+sites) || registrable(instance) != "" && registrable(instance) == registrable("site."+sites) {
		return fmt.Sprintf("Pages sites below %s share a domain with the instance at %s: browsers let them set cookies for it and count them as the same site. "+
			"Set pages_url to a domain that is used for nothing else.", sites, instance)
	}
	return ""
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
}

// local reports whether a host is a name of this machine, an IP address, or empty
// because it is not known yet.
func local(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil || host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// registrable returns the registrable domain of a host, within which cookies are
// shared; empty for an IP address and for a host that is a public suffix itself.
func registrable(host string) string {
	if _, err := netip.ParseAddr(host); err == nil {
		return ""
	}
	domain, err := publicsuffix.EffectiveTLDPlusOne(host)
	if err != nil {
		return ""
	}
	return domain
}
