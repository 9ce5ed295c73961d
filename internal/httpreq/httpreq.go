// Package httpreq reads from a request what all HTTP interfaces need: the
// address of the client, behind trusted proxies too, and the encodings that the
// client accepts.
package httpreq

import (
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

// IP returns the IP address of the client, without a port. It is the one in
// RemoteAddr, where the server has put that of Proxies.ClientAddr.
func IP(r *http.Request) string {
	if at, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		return at.Addr().Unmap().String()
	}
	return r.RemoteAddr
}

// Proxies are the networks of the proxies whose X-Forwarded-* headers are
// trusted.
type Proxies []netip.Prefix

// Contains reports whether an address is that of a trusted proxy.
func (p Proxies) Contains(addr netip.Addr) bool {
	for _, prefix := range p {
		if prefix.Contains(addr.Unmap()) {
			return true
		}
	}
	return false
}

// sent reports whether a request came from a trusted proxy.
func (p Proxies) sent(r *http.Request) bool {
	if len(p) == 0 {
		return false
	}
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && p.Contains(at.Addr())
}

// ClientAddr returns the address and port of the client: the last address in
// X-Forwarded-For that is not that of a trusted proxy, with port 0, if the
// request came from one; otherwise RemoteAddr.
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

// AcceptsGzip reports whether the client accepts an answer in gzip.
func AcceptsGzip(r *http.Request) bool {
	_, gzip := Encodings(r.Header.Get("Accept-Encoding"))
	return gzip > 0
}

// Encodings returns the weights that a header Accept-Encoding gives to Brotli and
// gzip, from 0 to 1; 0 is not acceptable. An encoding that is not named has the
// weight of "*". A weight that cannot be read is 0.
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
