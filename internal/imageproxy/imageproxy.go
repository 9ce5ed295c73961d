// Package imageproxy fetches images from other sites, so that the browsers of
// readers do not send requests to those sites.
//
// The URL of an image is signed, so that only URLs that occur in a text are fetched.
// Images are checked by their content, stored in the object storage, and served with
// headers that prevent browsers from executing scripts in them.
package imageproxy

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"svc/internal/blob"
	"svc/internal/errs"
	"svc/internal/limit"
	"svc/internal/lru"
	"svc/internal/outbound"
)

const (
	// MaxSize is the maximum size of an image in bytes.
	MaxSize = 10 << 20
	// maxURL is the maximum length of a URL that is rewritten. Encoded as
	// hexadecimal digits, it still fits in a request URL.
	maxURL = 2000
	// maxStored is the maximum total size of stored images in bytes.
	maxStored = 1 << 30
	// freshFor is how long an image is served before it is fetched again.
	freshFor = 24 * time.Hour
	// keptFor is how long an image is stored that is not fetched again.
	keptFor = 7 * 24 * time.Hour
	// failedFor is how long a URL without a valid image is not fetched again.
	failedFor = 5 * time.Minute
	// Prefix is the prefix of the keys of stored images. They are a cache, which is
	// not part of backups.
	Prefix = "image_proxy/"
)

// fetches limits the fetches on behalf of one caller. Stored images do not count.
var fetches = limit.Rate{Name: "image_proxy", Requests: 120, Period: time.Minute}

// Policy has the settings of the proxy.
type Policy struct {
	Enabled bool
	Local   bool     // images on loopback and private addresses are fetched too
	Allowed []string // hosts that browsers load images from directly, such as "example.org" or "*.example.org"
}

// Deps are the dependencies of the service.
type Deps struct {
	Store  blob.Store
	Key    []byte // of signatures
	Site   string // external URL of this site
	Policy func(ctx context.Context) (Policy, error)
	Limits *limit.Limiter
	Log    *slog.Logger
	Now    func() time.Time
}

// Service is the image proxy.
type Service struct {
	Deps
	share *limit.Share

	mu      sync.Mutex
	flights map[string]*flight
	failed  *lru.Map[string, time.Time] // when fetches failed
	stored  int64                       // approximate size of the stored images in bytes
}

// flight is a fetch in progress.
type flight struct {
	done  chan struct{}
	image *Image
	err   error
}

// Image is an image that can be served.
type Image struct {
	Type    string
	Content []byte
}

// New returns a proxy.
func New(d Deps) *Service {
	return &Service{
		Deps:    d,
		share:   limit.NewShare("images", limit.ShareLimits{Total: 8, Reserve: 4, PerUser: 4, PerAddress: 2, Queue: 64, Wait: 10 * time.Second}),
		flights: map[string]*flight{}, failed: lru.New[string, time.Time](1000, nil),
	}
}

// Rewriter returns a function that returns the URL from which pages load an image: a
// URL of this proxy, the URL itself for this site and for allowed hosts, or an empty
// string for an image that must not be loaded.
func (s *Service) Rewriter(ctx context.Context) (func(address string) string, error) {
	policy, err := s.Policy(ctx)
	if err != nil {
		return nil, err
	}
	return func(address string) string {
		if rest, ok := strings.CutPrefix(address, s.Site+"/"); ok {
			// Browsers treat a second slash or a backslash as the start of a host.
			return "/" + strings.TrimLeft(rest, `/\`)
		}
		if len(address) > 1 && strings.Trim(address[:2], `/\`) == "" {
			address = "https://" + address[2:]
		}
		u, err := url.Parse(address)
		switch {
		case err != nil || u.Scheme == "data":
			return ""
		case u.Scheme == "" && u.Host == "":
			return address
		case (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || len(address) > maxURL:
			return ""
		case u.Scheme == "https" && u.User == nil && policy.allows(u.Hostname()):
			return address
		case !policy.Enabled:
			return ""
		}
		return "/-/image_proxy/" + s.sign(address) + "/" + hex.EncodeToString([]byte(address))
	}, nil
}

// allows reports whether browsers may load images from a host directly.
func (p Policy) allows(host string) bool {
	return slices.ContainsFunc(p.Allowed, func(a string) bool {
		if below, ok := strings.CutPrefix(a, "*"); ok {
			return strings.HasSuffix(strings.ToLower(host), strings.ToLower(below))
		}
		return strings.EqualFold(a, host)
	})
}

// Sources returns the allowed hosts as sources of a content security policy.
func (s *Service) Sources(ctx context.Context) (string, error) {
	policy, err := s.Policy(ctx)
	if err != nil || len(policy.Allowed) == 0 {
		return "", err
	}
	var b strings.Builder
	for _, host := range policy.Allowed {
		b.WriteString(" https://" + host)
	}
	return b.String(), nil
}

func (s *Service) sign(address string) string {
	mac := hmac.New(sha256.New, s.Key)
	_, _ = mac.Write([]byte(address))
	return hex.EncodeToString(mac.Sum(nil)[:20])
}

// Get returns the image of a signed URL to a caller, which is a user or an IP
// address. NotFound if the signature is wrong, the proxy is disabled or there is no
// valid image. limit.Refused if the caller has exceeded the limit of fetches.
func (s *Service) Get(ctx context.Context, signature, address, caller string) (*Image, error) {
	raw, err := hex.DecodeString(address)
	if err != nil || len(raw) > maxURL || subtle.ConstantTimeCompare([]byte(s.sign(string(raw))), []byte(signature)) != 1 {
		return nil, errs.NotFound("")
	}
	policy, err := s.Policy(ctx)
	if err != nil {
		return nil, err
	}
	if !policy.Enabled {
		return nil, errs.NotFound("")
	}
	sum := sha256.Sum256(raw)
	name := hex.EncodeToString(sum[:])
	if kept, err := s.read(ctx, name); err != nil || kept != nil {
		return kept, err
	}
	return s.join(ctx, name, string(raw), caller, policy)
}

func key(name string) string { return Prefix + name[:2] + "/" + name[2:] }

// read returns a stored image; nil if there is none or it is old.
func (s *Service) read(ctx context.Context, name string) (*Image, error) {
	object, err := s.Store.Get(ctx, key(name))
	if errs.Is(err, errs.KindNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read image: %w", err)
	}
	defer object.Close()
	if s.Now().Sub(object.ModTime) > freshFor || object.Size > MaxSize {
		return nil, nil
	}
	content := make([]byte, 0, object.Size)
	b := bytes.NewBuffer(content)
	if _, err := b.ReadFrom(object); err != nil {
		return nil, fmt.Errorf("read image: %w", err)
	}
	return &Image{object.ContentType, b.Bytes()}, nil
}

// join fetches an image, or waits for a fetch that is in progress.
func (s *Service) join(ctx context.Context, name, address, caller string, policy Policy) (*Image, error) {
	s.mu.Lock()
	if at, ok := s.failed.Get(name); ok && s.Now().Sub(at) < failedFor {
		s.mu.Unlock()
		return nil, errs.NotFound("")
	}
	f := s.flights[name]
	if f == nil {
		if d := s.Limits.Allow(caller, fetches); !d.OK {
			s.mu.Unlock()
			return nil, limit.Refused{Decision: d}
		}
		f = &flight{done: make(chan struct{})}
		s.flights[name] = f
		// The fetch continues for others if the first caller leaves.
		go s.fly(context.WithoutCancel(ctx), f, name, address, policy)
	}
	s.mu.Unlock()
	select {
	case <-f.done:
		return f.image, f.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *Service) fly(ctx context.Context, f *flight, name, address string, policy Policy) {
	defer close(f.done)
	f.image, f.err = s.fetch(ctx, name, address, policy)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.flights, name)
	if errs.Is(f.err, errs.KindNotFound) {
		s.failed.Put(name, s.Now(), 1)
	}
}

func (s *Service) fetch(ctx context.Context, name, address string, policy Policy) (*Image, error) {
	release, err := s.share.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	content, err := outbound.New(policy.Local).Get(ctx, address, MaxSize)
	if err != nil {
		s.Log.DebugContext(ctx, "cannot fetch an image", "error", err)
		return nil, errs.NotFound("")
	}
	kind := Kind(content)
	if kind == "" || len(content) > MaxSize {
		return nil, errs.NotFound("")
	}
	image := &Image{kind, content}
	s.mu.Lock()
	room := s.stored+int64(len(content)) <= maxStored
	if room {
		s.stored += int64(len(content))
	}
	s.mu.Unlock()
	if room {
		if _, err := s.Store.Put(ctx, key(name), bytes.NewReader(content), blob.Options{ContentType: kind, Size: int64(len(content))}); err != nil {
			return nil, fmt.Errorf("store image: %w", err)
		}
	}
	return image, nil
}

// Sweep removes images that have not been fetched again for a week, and then the
// oldest until the rest is at most nine tenths of maxStored.
func (s *Service) Sweep(ctx context.Context) error {
	var list []blob.Info
	var total int64
	for info, err := range s.Store.List(ctx, Prefix) {
		if err != nil {
			return fmt.Errorf("list images: %w", err)
		}
		list = append(list, info)
		total += info.Size
	}
	slices.SortFunc(list, func(a, b blob.Info) int { return a.ModTime.Compare(b.ModTime) })
	for _, info := range list {
		if total <= maxStored/10*9 && s.Now().Sub(info.ModTime) < keptFor {
			break
		}
		if err := s.Store.Delete(ctx, info.Key); err != nil {
			return fmt.Errorf("delete image: %w", err)
		}
		total -= info.Size
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stored = total
	return nil
}
