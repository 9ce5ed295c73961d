package app

import (
	"net"
	"net/netip"
	"time"

	"github.com/pires/go-proxyproto"

	"svc/internal/httpreq"
)

// proxyHeaderTimeout is the time limit for the PROXY protocol header of a
// connection.
const proxyHeaderTimeout = 5 * time.Second

// proxied returns a listener whose connections have the address of the client if
// they come from a load balancer that is trusted to send it with the PROXY
// protocol (version 1 or 2). The header is read on the first use of a connection,
// not by Accept, so that a slow one does not block others. Connections without a
// header, such as health checks, have the address of the load balancer.
func (s *Server) proxied(l net.Listener) net.Listener {
	trusted := httpreq.Proxies(s.Config.ProxyProtocol)
	if len(trusted) == 0 {
		return l
	}
	return &proxyproto.Listener{
		Listener: l, ReadHeaderTimeout: proxyHeaderTimeout,
		ConnPolicy: func(o proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) {
			at, err := netip.ParseAddrPort(o.Upstream.String())
			if err == nil && trusted.Contains(at.Addr()) {
				return proxyproto.USE, nil
			}
			return proxyproto.SKIP, nil // the header is not parsed, so the request is invalid
		},
	}
}

// gated returns the connection that was counted by the gate.
func gated(c net.Conn) (*gatedConn, bool) {
	if p, ok := c.(*proxyproto.Conn); ok {
		c = p.Raw()
	}
	g, ok := c.(*gatedConn)
	return g, ok
}
