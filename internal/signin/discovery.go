package signin

import (
	"context"
	"crypto/x509"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"svc/internal/outbound"
	"svc/internal/setting"
)

const (
	// rediscover is how long the document of a provider is used, and retryAfter how
	// long a failure is remembered.
	rediscover = time.Hour
	retryAfter = 5 * time.Second
)

// outboundClient returns an HTTP client that reaches the host of an address of a
// provider even in a private network, and other hosts as the settings allow.
func outboundClient(ctx context.Context, from *setting.Service, address string, roots *x509.CertPool) (*http.Client, error) {
	settings, err := from.Current(ctx)
	if err != nil {
		return nil, err
	}
	policy := outbound.Policy{Allowed: slices.Clone(settings.OutboundAllowlist)}
	if u, err := url.Parse(address); err == nil {
		policy.Allowed = append(policy.Allowed, u.Hostname())
	}
	return outbound.NewClient(policy, roots, requestTime, maxResponse), nil
}

// document is what a provider publishes about itself. It is read when it is first
// needed, and again when it is old. If that fails, the old one is used.
type document[T any] struct {
	mu      sync.Mutex // held while it is read, so that one request is sent at a time
	found   *T
	foundAt time.Time
	fault   error
	faultAt time.Time
}

// get returns the document, which is read if it is older than life.
func (d *document[T]) get(ctx context.Context, now time.Time, life time.Duration, read func(context.Context) (*T, error)) (*T, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.found != nil && now.Sub(d.foundAt) < life {
		return d.found, nil
	}
	if d.fault != nil && now.Sub(d.faultAt) < retryAfter {
		if d.found != nil {
			return d.found, nil
		}
		return nil, d.fault
	}
	found, err := read(context.WithoutCancel(ctx))
	if err != nil {
		d.fault, d.faultAt = err, now
		if d.found != nil {
			return d.found, nil
		}
		return nil, err
	}
	d.found, d.foundAt, d.fault = found, now, nil
	return found, nil
}
