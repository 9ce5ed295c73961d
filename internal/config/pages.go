package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// PagesWarning says what is unsafe or useless about the host of Pages sites;
// empty when nothing is, or when no sites are served.
//
// Sites hold code of any user. Browsers let a host set cookies for the domain
// that it shares with another, and send SameSite cookies along with requests
// between hosts of one domain. So a site on the domain of the instance can fix
// the session of its users and get past what SameSite cookies protect.
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

// local reports whether a host is this machine by its name, or an IP address,
// or not known yet.
func local(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil || host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// registrable is the domain of a host within which cookies are shared; empty
// for an IP address and for a host that is a public suffix itself.
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
