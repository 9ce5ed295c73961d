package hook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
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
	sliceTime = 5 * time.Second
	slowTime  = 2 * time.Second
	// sweepPause is how late a retry can be.
	sweepPause = 10 * time.Second

	// A hook is disabled temporarily after tolerated consecutive failures, and
	// permanently after maxFailures.
	tolerated   = 3
	maxFailures = 40
	firstPause  = time.Minute
	longPause   = 24 * time.Hour
	// maxAttempts is how often a delivery is tried that the receiver did not get,
	// while the hook is enabled.
	maxAttempts = 4
	retryPause  = 10 * time.Second

	maxResponse = 8 << 10 // of a response body in the log
	maxBacklog  = 10_000
	keepLog     = 1000
	keepTime    = 7 * 24 * time.Hour
)

// Delivery is one event for one hook: it waits, or it is a row of the log.
type Delivery struct {
	ID           int64
	HookID       int64
	Key          string // Idempotency-Key
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
	uuid            string
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

// deliverWork is the background job that delivers what waits for a hook.
type deliverWork struct {
	HookID int64 `json:"hook_id"`
}

// Kind implements queue.Work.
func (deliverWork) Kind() string { return "hook_deliver" }

// deliver delivers what waits for a hook, in its order, until nothing waits, a
// delivery must be retried later, or the turn is over. The lease in the state of the
// hook makes sure that one worker at a time does it.
func (s *Service) deliver(ctx context.Context, w deliverWork) error {
	for {
		more, err := s.turn(ctx, w.HookID)
		if err != nil || !more {
			return err
		}
	}
}

// turn delivers a slice. It returns true if an event came while the lease was
// released.
func (s *Service) turn(ctx context.Context, hookID int64) (bool, error) {
	now := s.Now()
	lease := now.Add(leaseTime).Truncate(time.Microsecond)
	ok, err := claim(ctx, s.DB, hookID, now, lease)
	if err != nil || !ok {
		return false, err // another worker has it, or it waits: Sweep finds it
	}
	next, again, err := s.slice(ctx, hookID, &lease)
	if err != nil {
		// The lease ends by itself, and Sweep tries again.
		return false, fmt.Errorf("deliver to hook %d: %w", hookID, err)
	}
	if err := endLease(context.WithoutCancel(ctx), s.DB, hookID, lease, next); err != nil || next != nil {
		return false, err
	}
	if again {
		return false, s.DB.Tx(ctx, func(tx *db.Tx) error { return s.wake(ctx, tx, hookID) })
	}
	return hasWaiting(ctx, s.DB, hookID)
}

// wake adds the background job that delivers to a hook.
func (s *Service) wake(ctx context.Context, tx *db.Tx, hookID int64) error {
	t, err := findState(ctx, tx, hookID)
	if err != nil {
		if errors.Is(err, db.ErrNoRows) {
			return nil
		}
		return err
	}
	to := lane
	if t.slow {
		to = slowLane
	}
	return s.Queue.Add(ctx, tx, deliverWork{HookID: hookID}, queue.In(to), queue.Unique())
}

// slice delivers for one turn. next is when the first waiting delivery is tried
// again; again says that there may be more right now.
func (s *Service) slice(ctx context.Context, hookID int64, lease *time.Time) (next *time.Time, again bool, err error) {
	h, err := findAny(ctx, s.DB, hookID)
	if errors.Is(err, db.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
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

// send sends a delivery and writes the result into it. Errors are those of the
// server itself; those of the receiver are results.
func (s *Service) send(ctx context.Context, sender *outbound.Sender, h *Hook, d *Delivery) error {
	if err := s.complete(ctx, d); err != nil {
		return err
	}
	began := s.Now()
	d.Attempts++
	d.Status, d.Error, d.ResponseBody, d.responseHeaders = 0, "", "", ""
	r, err := s.request(ctx, h, d)
	if err == nil {
		var answer *outbound.Response
		if answer, err = sender.Send(r, maxResponse); err == nil {
			d.Status, d.ResponseBody = answer.Status, storable(string(answer.Body))
			d.responseHeaders = writeHeaders(answer.Header, nil)
		}
	}
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err() // the server stops: the delivery is repeated
		}
		d.Error = clip(storable(err.Error()), 500)
	}
	d.Duration = s.Now().Sub(began)
	return nil
}

// storable is text that both databases take.
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
	switch {
	case h.Kind != Webhook:
		text, err := h.chatMessage(d.Trigger, body)
		if err != nil {
			return nil, err
		}
		body, d.body = text, string(text)
	case h.Template != "":
		text, err := renderTemplate(h.Template, body)
		if err != nil {
			return nil, err
		}
		body, d.body = text, string(text)
	}
	d.URL = h.URL
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.target(), bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the URL is invalid")
	}
	secrets := map[string]bool{"X-Gitlab-Token": true}
	set := func(key, value string) { r.Header[key] = []string{value} }
	set("Content-Type", "application/json")
	set("User-Agent", "GitLab/"+s.Site.Version)
	set("Idempotency-Key", d.Key)
	if h.Kind == Webhook {
		set("X-Gitlab-Event", s.header(h, d))
		set("X-Gitlab-Webhook-UUID", newUUID())
		set("X-Gitlab-Instance", s.Site.URL)
		set("X-Gitlab-Event-UUID", d.uuid)
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
	d.requestHeaders = writeHeaders(r.Header, secrets)
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

// writeHeaders returns headers as JSON for the log. Secret ones are masked.
func writeHeaders(h http.Header, secrets map[string]bool) string {
	names := map[string]string{}
	size := 0
	for name, values := range h {
		value := storable(clip(strings.Join(values, ", "), 1000))
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

// settle records the result of a delivery. It returns when the delivery is tried
// again, or when the hook is enabled again; nil to go on.
func (s *Service) settle(ctx context.Context, h *Hook, t state, d *Delivery) (next *time.Time, err error) {
	now := s.Now()
	if minute := now.Unix() / 60; t.minute != minute {
		t.minute, t.calls = minute, 0
	}
	t.calls++
	t.slow = d.Duration > slowTime || !d.OK()
	d.waiting, d.DeliveredAt = false, &now
	if d.OK() {
		t.failures, t.disabledUntil = 0, nil
	} else {
		t.failures++
		again := d.Status == 0 || d.Status >= 500 || d.Status == http.StatusTooManyRequests || d.Status == http.StatusRequestTimeout
		switch {
		case t.failures >= maxFailures:
			h.Disabled = true
		case t.failures > tolerated:
			until := now.Add(pause(t.failures))
			t.disabledUntil, next = &until, &until
			d.waiting = again // it is the first that is tried when the hook is enabled again
		case again && d.Attempts < maxAttempts:
			at := now.Add(retryPause << (d.Attempts - 1))
			d.waiting, next = true, &at
		}
	}
	// The result is stored even if the server stops now: it was delivered.
	ctx = context.WithoutCancel(ctx)
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := saveDelivery(ctx, tx, d); err != nil {
			return err
		}
		if err := saveState(ctx, tx, h.ID, t); err != nil || !h.Disabled {
			return err
		}
		if err := setDisabled(ctx, tx, h.ID, true); err != nil {
			return err
		}
		return giveUp(ctx, tx, h.ID, "the webhook is disabled", now)
	})
	if h.Kind != Webhook && h.Disabled {
		h.Disabled = false // an integration stays active
	}
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

// Expire shortens delivery logs: by age, and to the newest deliveries of each hook.
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
	for _, drop := range []func(tx *db.Tx) (int64, error){
		func(tx *db.Tx) (int64, error) { return dropEvents(ctx, tx, s.Now().Add(-keepTime), batch) },
		func(tx *db.Tx) (int64, error) { return dropLoose(ctx, tx, s.Now().Add(-time.Hour), batch) },
	} {
		for {
			var n int64
			err := s.DB.Tx(ctx, func(tx *db.Tx) (err error) { n, err = drop(tx); return err })
			if err != nil {
				return fmt.Errorf("expire deliveries: %w", err)
			}
			if n < batch {
				break
			}
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
