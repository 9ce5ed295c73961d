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
	now     func() time.Time
	reading chan struct{} // has an element while it is read: one request is sent at a time

	mu      sync.Mutex
	found   *T
	foundAt time.Time
	fault   error
	faultAt time.Time
}

func newDocument[T any](now func() time.Time) *document[T] {
	return &document[T]{now: now, reading: make(chan struct{}, 1)}
}

// get returns the document, which is read if it is older than life. While another
// request reads it, the old one is used, unless the caller needs a younger one than
// rediscover allows.
func (d *document[T]) get(ctx context.Context, life time.Duration, read func(context.Context) (*T, error)) (*T, error) {
	if found, err := d.known(life); found != nil || err != nil {
		return found, err
	}
	select {
	case d.reading <- struct{}{}:
	default:
		if old := d.old(); old != nil && life >= rediscover {
			return old, nil
		}
		select {
		case d.reading <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	defer func() { <-d.reading }()
	// It may have been read meanwhile.
	if found, err := d.known(life); found != nil || err != nil {
		return found, err
	}
	found, err := read(context.WithoutCancel(ctx))
	d.mu.Lock()
	defer d.mu.Unlock()
	// The time is that of the end: a request that times out takes longer than a failure
	// is remembered.
	if err == nil {
		d.found, d.foundAt, d.fault = found, d.now(), nil
		return found, nil
	}
	d.fault, d.faultAt = err, d.now()
	if d.found != nil {
		return d.found, nil
	}
	return nil, err
}

// known returns the document if it is not older than life, or if it could not be read
// just now; if there is none, the failure. Both are nil if it is to be read.
func (d *document[T]) known(life time.Duration) (*T, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	if d.found != nil && now.Sub(d.foundAt) < life {
		return d.found, nil
	}
	if d.fault == nil || now.Sub(d.faultAt) >= retryAfter {
		return nil, nil
	}
	if d.found != nil {
		return d.found, nil
	}
	return nil, d.fault
}

// old returns the document of any age, or nil.
func (d *document[T]) old() *T {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.found
}
