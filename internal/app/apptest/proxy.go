package apptest

import (
	"net/netip"

	"svc/internal/config"
)

// BehindProxy trusts the X-Forwarded-For header of test clients, which choose
// the address of a client by it.
func BehindProxy(c *config.Config) {
	c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
}
