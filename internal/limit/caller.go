package limit

import (
	"context"
	"net/netip"
	"sync/atomic"
)

// Caller identifies to whom the use of resources is attributed: a user, or the
// address of an anonymous client. The zero Caller is the server itself.
type Caller struct {
	User    int64
	Address string // an AddressKey
}

// Anonymous reports whether the caller is an anonymous client.
func (c Caller) Anonymous() bool { return c.User == 0 && c.Address != "" }

// account is the caller of a request. The user is set later than the context is
// created, so the context has a pointer to it.
type account struct {
	user    atomic.Int64
	address string
	reads   Reads
}

type accountKey struct{}

// WithAddress returns a context whose operations are attributed to a client address,
// until Identify sets the user. addr is an address with or without a port.
//
// The caller is in the context because Shares are used deep inside the platform (by
// git processes, queries and renderings), by functions that have no other reason to
// know the caller. It affects fairness only, never permissions.
func WithAddress(ctx context.Context, addr string) context.Context {
	return context.WithValue(ctx, accountKey{}, &account{address: AddressKey(addr)})
}

// Identify attributes further operations of a request to a user. It does nothing in
// a context that was not created by WithAddress.
func Identify(ctx context.Context, user int64) {
	if a, ok := ctx.Value(accountKey{}).(*account); ok {
		a.user.Store(user)
	}
}

// CallerOf returns the caller of a context, or the server itself if the context does
// not belong to a request.
func CallerOf(ctx context.Context) Caller {
	a, ok := ctx.Value(accountKey{}).(*account)
	if !ok {
		return Caller{}
	}
	return Caller{User: a.user.Load(), Address: a.address}
}

// AddressKey returns the key by which limits count a client address: the address
// itself for IPv4, and its /64 network for IPv6, because a client usually has a
// whole one. addr may have a port or a zone. Text that is not an address is its own
// key.
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
