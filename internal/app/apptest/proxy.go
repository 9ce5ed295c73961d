package apptest

import (
	"net/netip"

	"svc/internal/config"
)

// BehindProxy trusts the X-Forwarded-For header of test clients, so that they can
// choose the client address.
func BehindProxy(c *config.Config) {
	c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
}
