package hook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/outbound"
	"svc/internal/queue"
)

const (
	lane     = "hooks"
	slowLane = "hooks_slow" // hooks that fail or answer late, so that others do not wait for them

	requestTime = 10 * time.Second
	leaseTime   = 2 * time.Minute
	// sliceSize and sliceTime bound what one hook delivers before others get a
	// turn.
	sliceSize = 50
	sliceTime = 2 * time.Second
	slowTime  = 2 * time.Second
	// sweepPause is the maximum delay of a retry.
	sweepPause = 10 * time.Second

	// A hook is disabled temporarily after tolerated consecutive failures, and
	// permanently after maxFailures.
	tolerated   = 3
	maxFailures = 40
	firstPause  = time.Minute
	longPause   = 24 * time.Hour
	// maxAttempts is the number of attempts of a delivery that the receiver does not
	// accept, while the hook is enabled.
	maxAttempts = 4
	retryPause  = 10 * time.Second // doubled each time

	maxResponse = 8 << 10  // of a response body in the log
	maxLogged   = 64 << 10 // of a rendered request body in the log
	maxBacklog  = 10_000
	keepLog     = 1000
	// maxSize is the maximum size of the payloads of a queue, and of a delivery log.
	maxSize  = 256 << 20
	sizeTime = 5 * time.Minute // the interval at which sizes are checked
	keepTime = 7 * 24 * time.Hour
)

// Delivery is one event for one hook. It is either waiting, or a row of the delivery log.
type Delivery struct {
	ID           int64
	HookID       int64
	Key          string // Idempotency-Key, X-Gitlab-Event-UUID
	Trigger      Trigger
	Attempts     int64
	URL          string
	Status       int // of the response; 0: there was none
	ResponseBody string
	Error        string
	Duration     time.Duration
	CreatedAt    time.Time
	DeliveredAt  *time.Time

	eventID         int64
	waiting         bool
	payload         string
	body            string // empty: the payload
	requestHeaders  string
	responseHeaders string
}

// Body is the body of the request.
func (d *Delivery) Body() string {
	if d.body != "" {
		return d.body
	}
	return d.payload
}

// RequestHeaders returns the headers of the request, with secrets masked.
func (d *Delivery) RequestHeaders() map[string]string { return readHeaders(d.requestHeaders) }

// ResponseHeaders returns the headers of the response.
func (d *Delivery) ResponseHeaders() map[string]string { return readHeaders(d.responseHeaders) }

func readHeaders(text string) map[string]string {
	h := map[string]string{}
	if text != "" {
		_ = json.Unmarshal([]byte(text), &h) // we wrote it
	}
	return h
}

// OK reports whether the receiver accepted the request.
func (d *Delivery) OK() bool { return d.Error == "" && d.Status >= 200 && d.Status < 300 }

// Repeated reports whether the delivery failed and is tried again later.
func (d *Delivery) Repeated() bool { return d.waiting }

// deliverWork is the background job that sends the waiting deliveries of a hook.
type deliverWork struct {
	HookID int64 `json:"hook_id"`
}

// Kind implements queue.Work.
func (deliverWork) Kind() string { return "hook_deliver" }

// deliver sends the waiting deliveries of a hook in order, until none is left, one must be
// retried later, or the turn of the hook is over. The lease in the state of the hook
// ensures that only one worker delivers to it at a time.
func (s *Service) deliver(ctx context.Context, w deliverWork) error {
	of, err := findShare(ctx, s.DB, w.HookID)
	if errors.Is(err, db.ErrNoRows) {
		return nil // deleted
	}
	if err != nil {
		return err
	}
	if !s.shares.enter(of, w.HookID) {
		// The hook is woken when another hook of the owner has had its turn, or by Sweep if
		// this process ends before that.
		return setDue(ctx, s.DB, w.HookID, s.Now())
	}
	for more := true; more && err == nil; {
		more, err = s.turn(ctx, w.HookID)
	}
	if next := s.shares.leave(of); next != 0 {
		ctx := context.WithoutCancel(ctx)
		err = errors.Join(err, s.DB.Tx(ctx, func(tx *db.Tx) error { return s.wake(ctx, tx, next) }))
	}
	return err
}

// turn takes the lease of a hook, sends up to sliceSize deliveries, and releases the
// lease. It returns true if an event was stored while the lease was being released.
func (s *Service) turn(ctx context.Context, hookID int64) (bool, error) {
	now := s.Now()
	lease := now.Add(leaseTime).Truncate(time.Microsecond)
	ok, err := claim(ctx, s.DB, hookID, now, lease)
	if err != nil || !ok {
		return false, err // another worker has the lease, or a retry is pending that Sweep will find
	}
	next, again, err := s.slice(ctx, hookID, &lease)
	if err != nil {
		// The lease expires, and Sweep tries again.
		return false, fmt.Errorf("deliver to hook %d: %w", hookID, err)
	}
	if err := endLease(context.WithoutCancel(ctx), s.DB, hookID, lease, next); err != nil || next != nil {
		return false, err
	}
	if again {
		return false, s.DB.Tx(ctx, func(tx *db.Tx) error {
			if err := trimWaiting(ctx, tx, hookID, maxBacklog, s.Now()); err != nil {
				return err
			}
			return s.wake(ctx, tx, hookID)
		})
	}
	return hasWaiting(ctx, s.DB, hookID)
}

// wake adds the background jobs that deliver to hooks.
func (s *Service) wake(ctx context.Context, tx *db.Tx, hooks ...int64) error {
	if len(hooks) == 0 {
		return nil
	}
	slow, err := findSlow(ctx, tx, hooks)
	if err != nil {
		return err
	}
	for _, id := range hooks {
		to := lane
		if slices.Contains(slow, id) {
			to = slowLane
		}
		if err := s.Queue.Add(ctx, tx, deliverWork{HookID: id}, queue.In(to), queue.Unique()); err != nil {
			return err
		}
	}
	return nil
}

// slice sends up to sliceSize deliveries. next is the time at which the first waiting
// delivery is retried; again reports that more deliveries may be waiting.
func (s *Service) slice(ctx context.Context, hookID int64, lease *time.Time) (next *time.Time, again bool, err error) {
	h, err := findAny(ctx, s.DB, hookID)
	if errors.Is(err, db.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if h.Disabled { // an integration that was switched off while messages waited
		return nil, false, s.DB.Tx(ctx, func(tx *db.Tx) error { return giveUp(ctx, tx, hookID, "the hook is not active", s.Now()) })
	}
	if err := s.open(h); err != nil {
		return nil, false, err
	}
	policy, err := s.policy(ctx, h)
	if err != nil {
		return nil, false, err
	}
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return nil, false, err
	}
	sender := outbound.NewSender(policy, !h.VerifyTLS, requestTime)
	defer sender.Close()
	began := s.Now()
	for range sliceSize {
		now := s.Now()
		t, err := findState(ctx, s.DB, hookID)
		if errors.Is(err, db.ErrNoRows) {
			return nil, false, nil // deleted
		}
		if err != nil {
			return nil, false, err
		}
		if !t.updated.Equal(h.UpdatedAt) {
			return nil, true, nil // the next turn reads the new configuration
		}
		if t.disabledUntil != nil && t.disabledUntil.After(now) {
			return t.disabledUntil, false, nil
		}
		if minute := now.Unix() / 60; settings.WebhookCalls > 0 && t.minute == minute && t.calls >= int64(settings.WebhookCalls) {
			at := time.Unix((minute+1)*60, 0).UTC()
			return &at, false, nil
		}
		d, err := nextDelivery(ctx, s.DB, hookID)
		if err != nil || d == nil {
			return nil, false, err
		}
		until := now.Add(leaseTime).Truncate(time.Microsecond)
		if ok, err := extend(ctx, s.DB, hookID, *lease, until); err != nil || !ok {
			return nil, false, err
		}
		*lease = until
		if next, err := s.prepare(ctx, d); err != nil || next != nil {
			return next, false, err
		}
		if err := s.send(ctx, sender, h, d); err != nil {
			return nil, false, err
		}
		next, err := s.settle(ctx, h, t, d)
		if err != nil || next != nil {
			return next, false, err
		}
		if h.Disabled || s.Now().Sub(began) > sliceTime {
			break
		}
	}
	return nil, !h.Disabled, nil
}

// prepare completes the payload of a delivery. If a repository cannot be read, it
// returns the time of the next attempt. After the last attempt the event is sent without
// commits, so that a broken repository does not block the other events of a group.
func (s *Service) prepare(ctx context.Context, d *Delivery) (next *time.Time, err error) {
	err = s.complete(ctx, d)
	if err == nil || ctx.Err() != nil || d.payload == "" {
		return nil, err
	}
	if d.Attempts++; d.Attempts < maxAttempts {
		at := s.Now().Add(retryPause << (d.Attempts - 1))
		return &at, saveAttempts(ctx, s.DB, d)
	}
	s.Log.ErrorContext(ctx, "webhook payload is incomplete", "delivery", d.ID, "err", err)
	return nil, nil
}

// send sends a delivery and stores the result in it. Only failures of the server itself
// are returned as errors; failures of the receiver are results.
func (s *Service) send(ctx context.Context, sender *outbound.Sender, h *Hook, d *Delivery) error {
	began := s.Now()
	d.Attempts++
	d.Status, d.Error, d.ResponseBody, d.responseHeaders = 0, "", "", ""
	var r *http.Request
	var err error
	if h.Kind == PipelinesEmail {
		if err = s.mail(ctx, h, d); err == nil {
			d.Status = http.StatusOK
		}
	} else {
		r, err = s.request(ctx, h, d)
	}
	if err == nil && r != nil {
		var answer *outbound.Response
		if answer, err = sender.Send(r, maxResponse+maxForm); err == nil {
			d.Status, d.ResponseBody = answer.Status, clip(h.Secrets.hide(storable(string(answer.Body))), maxResponse)
			d.responseHeaders = h.Secrets.writeHeaders(answer.Header, nil)
		}
	}
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err() // the server stops: the delivery is repeated
		}
		d.Error = clip(h.Secrets.hide(storable(err.Error())), 500)
	}
	d.Duration = s.Now().Sub(began)
	return nil
}

// storable returns a text without the characters that a database refuses.
func storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "")
}

// request builds the request of a delivery, and writes into the delivery what its
// log shows.
func (s *Service) request(ctx context.Context, h *Hook, d *Delivery) (*http.Request, error) {
	body := []byte(d.payload)
	d.body = ""
	to := chatRequest{}
	switch {
	case h.Kind != Webhook:
		chat, text, err := h.chat(d, body)
		if err != nil {
			return nil, err
		}
		to, body, d.body = chat, text, h.Secrets.hide(string(text))
	case h.Template != "":
		text, err := renderTemplate(h.Template, body)
		if err != nil {
			return nil, err
		}
		if body, d.body = text, string(text); len(text) > maxLogged {
			d.body = oversize // a template can expand a small payload into a large body for each event
		}
	}
	d.URL = h.URL
	r, err := http.NewRequestWithContext(ctx, cmp.Or(to.method, http.MethodPost), cmp.Or(to.url, h.target()), bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the URL is invalid")
	}
	secrets := map[string]bool{"X-Gitlab-Token": true}
	set := func(key, value string) { r.Header[key] = []string{value} }
	set("Content-Type", "application/json")
	set("User-Agent", "GitLab/"+s.Site.Version)
	set("Idempotency-Key", d.Key)
	for name, value := range to.header {
		set(name, value)
		secrets[name] = true
	}
	if h.Kind == Webhook {
		set("X-Gitlab-Event", s.header(h, d))
		set("X-Gitlab-Webhook-UUID", newUUID())
		set("X-Gitlab-Instance", s.Site.URL)
		// The value belongs to this hook alone. The receiver can send it back to prevent
		// recursion, and would block the hooks of others if they had the same value.
		set("X-Gitlab-Event-UUID", d.Key)
		if h.Secrets.Token != "" {
			set("X-Gitlab-Token", h.Secrets.Token)
		}
		for _, p := range h.Secrets.Headers {
			r.Header.Set(p.Key, p.Value)
			secrets[http.CanonicalHeaderKey(p.Key)] = true
		}
		if key, ok := signingKey(h.Secrets.SigningToken); ok {
			at := strconv.FormatInt(s.Now().Unix(), 10)
			set("webhook-id", d.Key)
			set("webhook-timestamp", at)
			set("webhook-signature", sign(key, d.Key, at, body))
		}
	}
	d.requestHeaders = h.Secrets.writeHeaders(r.Header, secrets)
	return r, nil
}

// sign is the signature of a request as Standard Webhooks describes it.
func sign(key []byte, id, at string, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + at + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// header is the value of X-Gitlab-Event.
func (s *Service) header(h *Hook, d *Delivery) string {
	if h.System() {
		return "System Hook"
	}
	return d.Trigger.info().Header
}

// writeHeaders returns headers as JSON for the log. Secret ones, and secrets in others, are
// masked.
func (s *Secrets) writeHeaders(h http.Header, secrets map[string]bool) string {
	names := map[string]string{}
	size := 0
	for name, values := range h {
		value := clip(s.hide(storable(strings.Join(values, ", "))), 1000)
		if secrets[name] {
			value = "[REDACTED]"
		}
		if size += len(name) + len(value); size > maxResponse {
			break
		}
		names[name] = value
	}
	text, _ := json.Marshal(names) // strings
	return string(text)
}

// settle records the result of a delivery. It returns when the delivery is retried, or
// when the hook is enabled again; nil to continue with the next delivery.
func (s *Service) settle(ctx context.Context, h *Hook, t state, d *Delivery) (next *time.Time, err error) {
	now := s.Now()
	if minute := now.Unix() / 60; t.minute != minute {
		t.minute, t.calls = minute, 0
	}
	t.calls++
	t.slow = d.Duration > slowTime || !d.OK()
	d.waiting, d.DeliveredAt = false, &now
	again := d.Status == 0 || d.Status >= 500 || d.Status == http.StatusTooManyRequests || d.Status == http.StatusRequestTimeout
	if d.OK() {
		t.failures, t.disabledUntil = 0, nil
	} else {
		t.failures++
		switch {
		case t.failures >= maxFailures && h.Kind == Webhook: // an integration stays active
			h.Disabled = true
		case t.failures > tolerated:
			until := now.Add(pause(t.failures))
			t.disabledUntil, next = &until, &until
			d.waiting = again // it is retried first when the hook is enabled again
		case again && d.Attempts < maxAttempts:
			at := now.Add(retryPause << (d.Attempts - 1))
			d.waiting, next = true, &at
		}
	}
	// The request was sent, so the result is stored even if the server is stopping.
	ctx = context.WithoutCancel(ctx)
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		same, err := saveState(ctx, tx, h.ID, t)
		if err != nil {
			return err
		}
		if !same { // the configuration changed meanwhile, so the failure does not count
			h.Disabled, next, d.waiting = false, nil, !d.OK() && again && d.Attempts < maxAttempts
		}
		if err := saveDelivery(ctx, tx, d); err != nil {
			return err
		}
		if !d.waiting {
			err = countLogged(ctx, tx, h.ID, 1)
		}
		if err != nil || !h.Disabled {
			return err
		}
		if err := setDisabled(ctx, tx, h.ID, true); err != nil {
			return err
		}
		return giveUp(ctx, tx, h.ID, "the webhook is disabled", now)
	})
	return next, err
}

// pause is how long a hook is disabled after a number of consecutive failures.
func pause(failures int64) time.Duration {
	n := min(failures-tolerated-1, 11)
	return min(firstPause<<n, longPause)
}

// Sweep adds the background jobs of hooks whose next delivery is due, or whose
// worker died.
func (s *Service) Sweep(ctx context.Context) error {
	const most = 1000
	due, err := findDue(ctx, s.DB, s.Now(), most)
	if err != nil {
		return fmt.Errorf("find due hooks: %w", err)
	}
	for _, id := range due {
		err := s.DB.Tx(ctx, func(tx *db.Tx) error {
			if err := trimWaiting(ctx, tx, id, maxBacklog, s.Now()); err != nil {
				return err
			}
			return s.wake(ctx, tx, id)
		})
		if err != nil {
			return fmt.Errorf("wake hook %d: %w", id, err)
		}
	}
	return nil
}

// Expire trims delivery logs: it deletes old deliveries, and all but the newest of each
// hook.
func (s *Service) Expire(ctx context.Context) error {
	const batch = 500
	for {
		full, err := findFull(ctx, s.DB, batch)
		if err != nil {
			return fmt.Errorf("find long delivery logs: %w", err)
		}
		for _, id := range full {
			if err := s.DB.Tx(ctx, func(tx *db.Tx) error { return trimLog(ctx, tx, id, keepLog) }); err != nil {
				return fmt.Errorf("trim the log of hook %d: %w", id, err)
			}
		}
		if len(full) < batch {
			break
		}
	}
	crowded, err := findCrowded(ctx, s.DB, maxBacklog)
	if err != nil {
		return fmt.Errorf("find long queues: %w", err)
	}
	for _, id := range crowded {
		if err := s.DB.Tx(ctx, func(tx *db.Tx) error { return trimWaiting(ctx, tx, id, maxBacklog, s.Now()) }); err != nil {
			return fmt.Errorf("trim the queue of hook %d: %w", id, err)
		}
	}
	for n := int64(batch); n == batch; {
		err := s.DB.Tx(ctx, func(tx *db.Tx) (err error) { n, err = dropEvents(ctx, tx, s.Now().Add(-keepTime), batch); return err })
		if err != nil {
			return fmt.Errorf("expire deliveries: %w", err)
		}
	}
	// Looking for events without deliveries reads all events, so it does not block writers.
	for {
		loose, err := findLoose(ctx, s.DB, s.Now().Add(-time.Hour), batch)
		if err == nil && len(loose) > 0 {
			err = s.DB.Tx(ctx, func(tx *db.Tx) error { return deleteLoose(ctx, tx, loose) })
		}
		if err != nil {
			return fmt.Errorf("expire events: %w", err)
		}
		if len(loose) < batch {
			return nil
		}
	}
}

// TrimSizes limits the sizes of the payloads of each queue and of each delivery log: the
// newest deliveries are kept. Payloads are several megabytes at most, so limits in
// deliveries allow gigabytes.
func (s *Service) TrimSizes(ctx context.Context, limit int64) error {
	// Only hooks that got a large payload since the previous runs can exceed the limit.
	hooks, err := findLarge(ctx, s.DB, s.Now().Add(-time.Hour), limit/maxBacklog)
	if err != nil {
		return fmt.Errorf("find large deliveries: %w", err)
	}
	for _, id := range hooks {
		err := s.DB.Tx(ctx, func(tx *db.Tx) error {
			last, err := findOver(ctx, tx, id, true, limit)
			if err != nil {
				return err
			}
			if err := endWaiting(ctx, tx, id, last, s.Now()); err != nil {
				return err
			}
			if last, err = findOver(ctx, tx, id, false, limit); err != nil {
				return err
			}
			return dropLogged(ctx, tx, id, last)
		})
		if err != nil {
			return fmt.Errorf("trim the deliveries of hook %d: %w", id, err)
		}
	}
	return nil
}

// refuse is the error of a test or resend that the receiver did not accept.
func (d *Delivery) refuse() error {
	if d.Error != "" {
		return errs.Unprocessable("%s", d.Error)
	}
	return errs.Unprocessable("The receiver answered with status %d", d.Status)
}
