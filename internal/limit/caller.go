package limit

import (
	"context"
	"net/netip"
	"sync/atomic"
)

// Caller is whom a piece of work is accounted to: a user, or the address of a
// client that has not signed in. The zero Caller is the server itself.
type Caller struct {
	User    int64
	Address string // an AddressKey
}

// Anonymous reports whether the caller is a client that has not signed in.
func (c Caller) Anonymous() bool { return c.User == 0 && c.Address != "" }

// account is the caller of one request. The user becomes known only after the
// request's context was made, so it is set in place.
type account struct {
	user    atomic.Int64
	address string
	reads   Reads
}

type accountKey struct{}

// WithAddress returns a context whose work is accounted to a client's address,
// until Identify names its user. addr is an address with or without a port.
//
// The caller travels in the context because Shares are asked deep inside the
// platform (a git process, a query, a rendering), below functions that have no
// other reason to know who calls. It decides about fairness only, never about
// rights.
func WithAddress(ctx context.Context, addr string) context.Context {
	return context.WithValue(ctx, accountKey{}, &account{address: AddressKey(addr)})
}

// Identify accounts the rest of a request's work to a user. It does nothing in
// a context that was not made by WithAddress.
func Identify(ctx context.Context, user int64) {
	if a, ok := ctx.Value(accountKey{}).(*account); ok {
		a.user.Store(user)
	}
}

// CallerOf returns the caller of a context: the server itself when the work
// belongs to no request.
func CallerOf(ctx context.Context) Caller {
	a, ok := ctx.Value(accountKey{}).(*account)
	if !ok {
		return Caller{}
	}
	return Caller{User: a.user.Load(), Address: a.address}
}

// AddressKey is what limits count a client's address by: the address itself for
// IPv4, and its /64 network for IPv6, of which one client usually has a whole
// one. addr may carry a port or a zone. What is no address is its own key.
func AddressKey(addr string) string {
	at, err := netip.ParseAddrPort(addr)
	ip := at.Addr()
	if err != nil {
		if ip, err = netip.ParseAddr(addr); err != nil {
			return addr
		}
	}
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		return ip.String()
	}
	prefix, _ := ip.Prefix(64) // fits every IPv6 address
	return prefix.String()
}
