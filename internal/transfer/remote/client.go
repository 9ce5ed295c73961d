// Package remote reads groups and projects of another server by its v4 API, and its
// repositories over HTTP, for imports. It returns the rows of export files. Everything
// that it reads is untrusted: the number of requests, the size of answers and the time
// are bounded, and nothing that the other server answers leads to another address. It
// belongs to package transfer.
package remote

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"svc/internal/errs"
	"svc/internal/outbound"
)

// Options describe a source.
type Options struct {
	URL    string // of the server, as ParseURL returns it
	Token  string // access token with the scopes read_api and read_repository
	Policy outbound.Policy
	Limits Limits
	Now    func() time.Time
}

// parallel is the number of requests that are sent to a source at once.
const parallel = 4

// Client sends requests to a source.
type Client struct {
	o         Options
	base      *url.URL
	limits    Limits
	transport *http.Transport
	client    *http.Client
	places    chan struct{} // one for each request under way
	read      atomic.Int64  // bytes of all answers
	held      atomic.Int64  // bytes of the current page, and of what belongs to its items

	mu    sync.Mutex
	pause time.Time // until when nothing is sent
}

// Failure is an error of the source or of the connection to it. Its text is for the
// user, and contains neither the token nor addresses.
type Failure struct {
	Text      string
	Status    int  // of HTTP; 0 without an answer
	Temporary bool // another attempt may succeed
	limit     bool // a limit of all answers together was exceeded
	cause     error
}

// Error implements error.
func (f *Failure) Error() string { return f.Text }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.cause }

func fail(format string, args ...any) *Failure { return &Failure{Text: fmt.Sprintf(format, args...)} }

// overLimit is fail for a limit of all answers together, after which nothing more can be
// read.
func overLimit(format string, args ...any) *Failure {
	f := fail(format, args...)
	f.limit = true
	return f
}

// isOver reports whether an error is that of overLimit.
func isOver(err error) bool {
	var f *Failure
	return errors.As(err, &f) && f.limit
}

// ParseURL checks the URL of a server and returns it without the path of its API.
// Invalid, with a text that can follow the name of the field.
func ParseURL(text string) (string, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Opaque != "":
		return "", errs.Invalid("must be a URL that starts with http:// or https://")
	case u.User != nil:
		return "", errs.Invalid("must not contain credentials")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", errs.Invalid("must not contain a query or a fragment")
	case len(text) > 1000 || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "", errs.Invalid("is too long or contains control characters")
	}
	u.Path, u.RawPath = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/api/v4"), ""
	return u.String(), nil
}

// Open returns a client. It does not connect yet.
func Open(o Options) (*Client, error) {
	base, err := url.Parse(o.URL)
	if err != nil {
		return nil, fail("The URL of the source is not valid.")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Client{o: o, base: base, limits: o.Limits.OrUsual(), transport: o.Policy.Transport(15 * time.Second), places: make(chan struct{}, parallel)}
	c.transport.MaxIdleConnsPerHost, c.transport.MaxConnsPerHost = parallel, parallel
	c.client = &http.Client{Transport: c.transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c, nil
}

// Close ends the connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// answer is a response with status 200. Its body is bounded.
type answer struct {
	header http.Header
	body   io.ReadCloser
}

// get sends a request, again if that may help, and has the answer read by use. The
// path is that of the API, escaped. use may be called again after a broken connection.
func (c *Client) get(ctx context.Context, path string, query url.Values, limit int64, use func(answer) error) error {
	pause := c.limits.Pause
	for try := 1; ; try++ {
		err := c.try(ctx, path, query, limit, use)
		var failure *Failure
		if err == nil || ctx.Err() != nil || !errors.As(err, &failure) || !failure.Temporary || try >= c.limits.Tries {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return err
		}
		wait := pause + rand.N(pause/2+1)
		if pause < 16*c.limits.Pause {
			pause *= 2
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// try sends a request once.
func (c *Client) try(ctx context.Context, path string, query url.Values, limit int64, use func(answer) error) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case c.places <- struct{}{}:
	}
	defer func() { <-c.places }()
	if err := c.await(ctx); err != nil {
		return err
	}
	at := *c.base
	raw := strings.TrimRight(c.base.EscapedPath(), "/") + "/api/v4" + path
	plain, err := url.PathUnescape(raw)
	if err != nil {
		return fail("A path of the source is not valid.")
	}
	at.Path, at.RawPath, at.RawQuery = plain, raw, query.Encode()
	within, cancel := context.WithTimeout(ctx, c.limits.Request)
	defer cancel()
	q, err := http.NewRequestWithContext(within, http.MethodGet, at.String(), nil)
	if err != nil {
		return fail("The URL of the source is not valid.")
	}
	q.Header.Set("PRIVATE-TOKEN", c.o.Token)
	q.Header.Set("Accept", "application/json")
	q.Header.Set("User-Agent", "svc-import")
	response, err := c.client.Do(q)
	if err != nil {
		return c.unreachable(ctx, err)
	}
	defer response.Body.Close()
	if err := c.limited(response); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return refused(response.StatusCode)
	}
	// Answers with the usual limit are decoded; others are files.
	body := &bounded{from: response.Body, left: limit, client: c, file: limit != c.limits.Body}
	err = use(answer{response.Header, body})
	var failure *Failure
	switch {
	case err == nil, errors.As(err, &failure), errs.KindOf(err) != 0:
		return err
	case body.err != nil:
		return body.err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case within.Err() != nil:
		return &Failure{Text: "The source sends its answer too slowly.", Temporary: true, cause: err}
	case body.broken != nil:
		return &Failure{Text: "The connection to the source was interrupted.", Temporary: true, cause: body.broken}
	}
	return err
}

// await waits until the source takes requests again.
func (c *Client) await(ctx context.Context) error {
	c.mu.Lock()
	until := c.pause
	c.mu.Unlock()
	if d := until.Sub(c.o.Now()); d > 0 {
		return sleep(ctx, min(d, c.limits.Wait))
	}
	return nil
}

// limited notes how long the source wants no requests: it answers with 429 and
// Retry-After, or says that no request is left until a time.
//
// See https://docs.gitlab.com/administration/settings/user_and_ip_rate_limits/.
func (c *Client) limited(r *http.Response) error {
	var wait time.Duration
	now := c.o.Now()
	if r.StatusCode == http.StatusTooManyRequests || r.StatusCode == http.StatusServiceUnavailable {
		text := r.Header.Get("Retry-After")
		if seconds, err := strconv.ParseInt(text, 10, 64); err == nil && seconds >= 0 {
			wait = time.Duration(min(seconds, 1<<30)) * time.Second
		} else if at, err := http.ParseTime(text); err == nil {
			wait = at.Sub(now)
		}
	} else if r.Header.Get("RateLimit-Remaining") == "0" {
		if at, err := strconv.ParseInt(r.Header.Get("RateLimit-Reset"), 10, 64); err == nil {
			wait = min(time.Unix(at, 0).Sub(now), c.limits.Wait) // the next answer says more
		}
	}
	if wait > c.limits.Wait {
		return fail("The source asks for a pause of %s because of its rate limit. Try again later.", wait.Round(time.Second))
	}
	if wait > 0 {
		c.mu.Lock()
		if until := now.Add(wait); until.After(c.pause) {
			c.pause = until
		}
		c.mu.Unlock()
	}
	if r.StatusCode == http.StatusTooManyRequests {
		return &Failure{Text: "The source limits the rate of requests (HTTP 429).", Status: r.StatusCode, Temporary: true}
	}
	return nil
}

func (c *Client) unreachable(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, outbound.ErrLocal):
		return &Failure{Text: "The URL of the source leads to an address of the local network, which is not allowed.", cause: err}
	}
	plain := outbound.Plain(err)
	return &Failure{Text: "The source cannot be reached: " + plain.Error() + ".", Temporary: true, cause: plain}
}

func refused(code int) error {
	switch {
	case code == http.StatusUnauthorized:
		return &Failure{Text: "The source refused the access token (HTTP 401).", Status: code}
	case code == http.StatusForbidden:
		return &Failure{Text: "The access token has no permission for this (HTTP 403).", Status: code}
	case code == http.StatusNotFound:
		return &Failure{Text: "The source does not have this, or not for this access token (HTTP 404).", Status: code}
	case code >= 300 && code < 400:
		return &Failure{Text: fmt.Sprintf("The source redirects to another address (HTTP %d). Redirects are not followed: use the final URL and the current path.", code), Status: code}
	}
	return &Failure{Text: fmt.Sprintf("The source answered with HTTP %d.", code), Status: code, Temporary: code >= 500}
}

// absent reports whether the source does not have something, or not for this token.
func absent(err error) bool {
	var f *Failure
	return errors.As(err, &f) && (f.Status == http.StatusNotFound || f.Status == http.StatusForbidden)
}

// one reads an object.
func one[T any](ctx context.Context, c *Client, path string, query url.Values) (T, error) {
	var value T
	err := c.get(ctx, path, query, c.limits.Body, func(a answer) error {
		value = *new(T)
		var raw json.RawMessage
		err := json.NewDecoder(a.body).Decode(&raw)
		if err == nil {
			if heavy := c.weigh(raw); isOver(heavy) {
				return heavy
			} else if heavy != nil {
				return fail("An answer of the source has too many values.")
			}
			err = json.Unmarshal(raw, &value)
		}
		if wrongType(err) {
			return fail("The source does not answer like a server of the v4 API: %s", plainly(err))
		}
		return brokenOff(err)
	})
	return value, err
}

// brokenOff returns a Failure for an answer that is not complete.
func brokenOff(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return &Failure{Text: "An answer of the source breaks off.", Temporary: true, cause: err}
	}
	return err
}

func wrongType(err error) bool {
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	var clock *time.ParseError
	return errors.As(err, &kind) || errors.As(err, &syntax) || errors.As(err, &clock)
}

// plainly returns what is wrong with an answer, in words. It is bounded, because it may
// repeat what the source sent.
func plainly(err error) string {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		field := kind.Field[strings.LastIndexByte(kind.Field, '.')+1:]
		if field == "" {
			value, _, _ := strings.Cut(kind.Value, " ")
			return "it is a " + value + " instead of an object."
		}
		value, _, _ := strings.Cut(kind.Value, " ") // without the value itself
		return cut(field, 100) + " has the wrong type (" + value + ")."
	}
	text := strings.TrimPrefix(err.Error(), "json: ")
	if len(text) > 200 {
		text = text[:200]
	}
	return strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, text), "") + "."
}

// perPage is the number of items of a page. Each can have a text of 1 MiB.
const perPage = 50

// list reads a list page by page, of which one is held in memory, with what each reads
// for its items. Items that cannot be decoded are passed to bad with
// the reason. The next page is asked for at the same path: of what the source names
// as the next page only the query counts.
//
// See https://docs.gitlab.com/api/rest/#pagination.
func list[T any](ctx context.Context, c *Client, path string, query url.Values, each func(page []T) error, bad func(why string)) error {
	return pages(ctx, c, path, query, func() { c.held.Store(0) }, each, bad)
}

// pages reads a list, and calls begin before each page.
func pages[T any](ctx context.Context, c *Client, path string, query url.Values, begin func(), each func(page []T) error, bad func(why string)) error {
	ask := url.Values{}
	for name, values := range query {
		ask[name] = values
	}
	if ask.Get("per_page") == "" {
		ask.Set("per_page", strconv.Itoa(perPage))
	}
	seen := map[[sha256.Size]byte]bool{} // digests, because queries may be long
	for items, number := 0, 1; ; number++ {
		key := sha256.Sum256([]byte(ask.Encode()))
		if seen[key] {
			return fail("The source repeats a page of a list.")
		}
		seen[key] = true
		begin()
		var page []T
		var wrong []string
		var next url.Values
		err := c.get(ctx, path, ask, c.limits.Body, func(a answer) (err error) {
			page, wrong, err = decodePage[T](a.body, c.weigh)
			next = nextPage(a.header, ask, number, len(page)+len(wrong))
			return err
		})
		if err != nil {
			return err
		}
		if items += len(page) + len(wrong); items > c.limits.Items {
			return fail("A list of the source has more than %d items.", c.limits.Items)
		}
		for _, why := range wrong {
			bad(why)
		}
		if len(page) > 0 {
			if err := each(page); err != nil {
				return err
			}
		}
		if next == nil || len(page)+len(wrong) == 0 {
			return nil
		}
		ask = next
	}
}

// decodePage reads a JSON array item by item. weigh checks each before it is decoded.
func decodePage[T any](in io.Reader, weigh func(raw []byte) error) (page []T, wrong []string, err error) {
	noJSON := func(err error) error {
		if wrongType(err) {
			return fail("The source does not answer with JSON.")
		}
		return brokenOff(err)
	}
	d := json.NewDecoder(in)
	token, err := d.Token()
	if err != nil {
		return nil, nil, noJSON(err)
	}
	if token != json.Delim('[') {
		return nil, nil, fail("The source does not answer with a list.")
	}
	for d.More() {
		if len(page)+len(wrong) >= maxPage {
			return nil, nil, fail("A page of the source has more than %d items.", maxPage)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, nil, noJSON(err)
		}
		var item T
		if err := weigh(raw); isOver(err) {
			return nil, nil, err
		} else if err != nil {
			wrong = append(wrong, err.Error())
			continue
		}
		if err := json.Unmarshal(raw, &item); err != nil {
			wrong = append(wrong, plainly(err))
			continue
		}
		page = append(page, item)
	}
	if _, err := d.Token(); err != nil {
		return nil, nil, noJSON(err)
	}
	return page, wrong, nil
}

// maxPage is the maximum number of items of a page. Servers send 100 at most, but some
// lists, such as links of an issue, have no pages.
const maxPage = 10_000

// nextPage returns the query of the next page, or nil after the last one: that of the
// Link header, or one with the number in X-Next-Page. Without both, a full page is
// followed by another.
func nextPage(h http.Header, ask url.Values, number, items int) url.Values {
	for _, header := range h.Values("Link") {
		for part := range strings.SplitSeq(header, ",") {
			address, rest, ok := strings.Cut(strings.TrimSpace(part), ">")
			if !ok || !strings.HasPrefix(address, "<") || !strings.Contains(rest, `rel="next"`) {
				continue
			}
			u, err := url.Parse(address[1:])
			if err != nil || len(u.RawQuery) > 4096 {
				return nil
			}
			return u.Query()
		}
	}
	next := url.Values{}
	for name, values := range ask {
		next[name] = values
	}
	if page, ok := h["X-Next-Page"]; ok {
		n, err := strconv.Atoi(page[0])
		if err != nil || n < 1 {
			return nil
		}
		next["page"] = []string{strconv.Itoa(n)}
		return next
	}
	size, err := strconv.Atoi(ask.Get("per_page"))
	if h.Get("Link") != "" || err != nil || items != size {
		return nil
	}
	next["page"] = []string{strconv.Itoa(number + 1)}
	return next
}
