package api

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"svc/internal/bind"
	"svc/internal/errortrack"
	"svc/internal/errs"
	"svc/internal/limit"
)

// errorCollectorRoutes adds the endpoints to which SDKs send events. SDKs derive the
// URLs from the DSN of a client key: see errortrack.Service.DSN. The endpoints are
// public and only report whether an event was accepted.
func (a *API) errorCollectorRoutes() {
	a.tag("Error collector")
	const at = "/error_tracking/collector/api/{id}"
	for _, one := range []struct {
		path, summary string
		read          readEnvelope
	}{
		{at + "/envelope/", "Send an envelope", errortrack.ReadEnvelope},
		{at + "/store/", "Send an event (deprecated)", readStored},
	} {
		handle(a, "POST "+one.path, sdkCall, a.collector(one.read), raw, status(http.StatusOK), summary(one.summary))
	}
}

const (
	// maxSent is the limit of a request body in bytes, maxUnpacked that of the
	// decompressed body. Large bodies consist mostly of attachments, which are
	// skipped.
	maxSent     = 20 << 20
	maxUnpacked = 100 << 20
)

type collectParams struct {
	Project int64  `param:"id"`
	Key     string `param:"sentry_key" secret:"true" doc:"Client key, if it is not in a header."`
}

type collectedJSON struct {
	ID string `json:"id,omitempty" doc:"ID of the event, if the request contained one."`
}

// readEnvelope reads a decompressed body, and calls admit with the key in it, empty if
// there is none, before it reads the rest.
type readEnvelope func(from io.Reader, admit func(key string) error) (*errortrack.Envelope, error)

// readStored parses the body of the deprecated endpoint: a single event. It contains no
// key.
func readStored(from io.Reader, admit func(key string) error) (*errortrack.Envelope, error) {
	if err := admit(""); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(from, errortrack.MaxEvent+1))
	if err != nil {
		return nil, err
	}
	if len(text) > errortrack.MaxEvent {
		return nil, bind.TooLarge(nil)
	}
	return &errortrack.Envelope{Event: text}, nil
}

// collector returns a handler that accepts events from an SDK:
// https://develop.sentry.dev/sdk/foundations/transport/
func (a *API) collector(read readEnvelope) func(*call, collectParams) (collectedJSON, error) {
	return func(c *call, p collectParams) (collectedJSON, error) {
		var from errortrack.Sender
		admit := func(key string) (err error) {
			from, err = a.admitSender(c, p.Project, key)
			return err
		}
		key := sentKey(c.r.Header, p.Key)
		if key != "" { // otherwise the key is in the body
			if err := admit(key); err != nil {
				return collectedJSON{}, err
			}
		}
		var refusal error
		sent, err := a.readSent(c, func(body io.Reader) (*errortrack.Envelope, error) {
			return read(body, func(inBody string) error {
				if key == "" {
					refusal = admit(inBody)
				}
				return refusal
			})
		})
		if refusal != nil {
			return collectedJSON{}, refusal
		}
		if err != nil {
			return collectedJSON{}, err
		}
		if sent.Event == nil {
			return collectedJSON{sent.ID}, nil
		}
		return a.collect(c, from, sent)
	}
}

func (a *API) collect(c *call, from errortrack.Sender, sent *errortrack.Envelope) (collectedJSON, error) {
	event, err := errortrack.ParseEvent(sent.Event, a.Now())
	if err != nil {
		return collectedJSON{}, err
	}
	if event.ID == "" {
		event.ID = sent.ID
	}
	if err := a.holdSender(c, from, a.Limits.Allow); err != nil {
		return collectedJSON{}, err
	}
	id, err := a.Errors.Collect(c, from, event, c.actor.IP)
	return collectedJSON{id}, err
}

// sentKey returns the client key in the query or in a header.
func sentKey(h http.Header, query string) string {
	if query != "" {
		return query
	}
	for _, name := range []string{"X-Sentry-Auth", "Authorization"} {
		scheme, rest, _ := strings.Cut(h.Get(name), " ")
		if !strings.EqualFold(scheme, "Sentry") {
			continue
		}
		for part := range strings.SplitSeq(rest, ",") {
			if key, value, _ := strings.Cut(strings.TrimSpace(part), "="); key == "sentry_key" {
				return strings.TrimSpace(value)
			}
		}
	}
	return ""
}

// admitSender checks the key and its rate limit, before the body is read.
func (a *API) admitSender(c *call, projectID int64, key string) (errortrack.Sender, error) {
	from, err := a.Errors.Admit(c, projectID, key)
	if err != nil {
		return from, err
	}
	return from, a.holdSender(c, from, a.Limits.Peek)
}

// holdSender enforces the rate limit of a key. If it is exceeded, SDKs pause for the
// time in the response headers.
func (a *API) holdSender(c *call, from errortrack.Sender, ask func(string, limit.Rate) limit.Decision) error {
	settings, err := a.Settings.Current(c)
	if err != nil || settings.ErrorEventsPerMinute == 0 {
		return err
	}
	err = enforce(c, ask, "error_key:"+strconv.FormatInt(from.KeyID, 10), perMinute("error_tracking", settings.ErrorEventsPerMinute))
	if errors.Is(err, errThrottled) {
		// The format is seconds:categories:scope; no category means all.
		h := c.w.Header()
		h.Set("X-Sentry-Rate-Limits", h.Get("Retry-After")+"::key")
	}
	return err
}

// readSent decompresses the body.
func (a *API) readSent(c *call, read func(io.Reader) (*errortrack.Envelope, error)) (*errortrack.Envelope, error) {
	body, done, err := bind.Unpack(http.MaxBytesReader(c.w, c.r.Body, maxSent), c.r.Header.Get("Content-Encoding"))
	if err != nil {
		return nil, sentError(err)
	}
	defer done()
	sent, err := read(&bind.Bounded{From: body, Left: maxUnpacked})
	if err != nil {
		return nil, sentError(err)
	}
	return sent, nil
}

// sentError converts an error of reading a compressed body.
func sentError(err error) error {
	if errs.KindOf(err) != 0 {
		return err
	}
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return bind.TooLarge(err)
	}
	if _, known := errors.AsType[*bind.InputError](err); known {
		return err
	}
	return &bind.InputError{Fault: bind.FaultMalformed, Text: "the body cannot be read", Cause: err}
}
