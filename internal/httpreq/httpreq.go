// Package httpreq reads request properties that all HTTP interfaces need: the
// address of the client, also behind trusted proxies, and the encodings that the
// client accepts.
package httpreq

import (
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

// IP returns the IP address of the client, without a port. It is taken from
// RemoteAddr, which the server has set to Proxies.ClientAddr.
func IP(r *http.Request) string {
	if at, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		return at.Addr().Unmap().String()
	}
	return r.RemoteAddr
}

// Proxies are the networks of the proxies whose X-Forwarded-* headers are
// trusted.
type Proxies []netip.Prefix

// Contains reports whether an address belongs to a trusted proxy.
func (p Proxies) Contains(addr netip.Addr) bool {
	for _, prefix := range p {
		if prefix.Contains(addr.Unmap()) {
			return true
		}
	}
	return false
}

// sent reports whether a request was sent by a trusted proxy.
func (p Proxies) sent(r *http.Request) bool {
	if len(p) == 0 {
		return false
	}
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && p.Contains(at.Addr())
}

// ClientAddr returns the address and port of the client. If the request was sent by
// a trusted proxy, it is the last address in X-Forwarded-For that does not belong to
// a trusted proxy, with port 0; otherwise RemoteAddr.
func (p Proxies) ClientAddr(r *http.Request) string {
	if !p.sent(r) {
		return r.RemoteAddr
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0; i-- {
		addr, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		if !p.Contains(addr) || i == 0 {
			return netip.AddrPortFrom(addr, 0).String()
		}
	}
	return r.RemoteAddr
}

// ForwardedTLS reports whether a trusted proxy received the request over TLS.
func (p Proxies) ForwardedTLS(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") && p.sent(r)
}

// AcceptsGzip reports whether the client accepts a response with gzip.
func AcceptsGzip(r *http.Request) bool {
	_, gzip := Encodings(r.Header.Get("Accept-Encoding"))
	return gzip > 0
}

// Encodings returns the weights of Brotli and gzip in an Accept-Encoding header,
// from 0 to 1; 0 means not acceptable. An encoding that is not listed has the weight
// of "*". An invalid weight is 0.
func Encodings(header string) (brotli, gzip float64) {
	brotli, gzip = -1, -1
	others := 0.0
	for item := range strings.SplitSeq(header, ",") {
		name, params, _ := strings.Cut(item, ";")
		q := 1.0
		if text, ok := strings.CutPrefix(strings.ReplaceAll(strings.ToLower(params), " ", ""), "q="); ok {
			var err error
			if q, err = strconv.ParseFloat(text, 64); err != nil || !(q >= 0 && q <= 1) {
				q = 0
			}
		}
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "br":
			brotli = q
		case "gzip", "x-gzip":
			gzip = q
		case "*":
			others = q
		}
	}
	if brotli < 0 {
		brotli = others
	}
	if gzip < 0 {
		gzip = others
	}
	return brotli, gzip
}
