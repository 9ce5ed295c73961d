package api

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"svc/internal/bind"
	"svc/internal/errs"
	"svc/internal/limit"
	"svc/internal/project"
)

// messageJSON is the usual body of an error.
type messageJSON struct {
	Message any `json:"message"`
}

// codedJSON is the body of an error with a machine-readable code.
type codedJSON struct {
	Message any    `json:"message"`
	Code    string `json:"error_code"`
}

// errorJSON is the body of errors about the request itself.
type errorJSON struct {
	Error string `json:"error"`
}

// scopeError means that the token has none of these scopes.
type scopeError []string

func (e scopeError) Error() string { return "insufficient scope" }

// scopeJSON is the body of a scopeError.
type scopeJSON struct {
	Error       string `json:"error"`
	Description string `json:"error_description"`
	Scope       string `json:"scope"`
}

// errThrottled means that a rate limit is exceeded.
var errThrottled = errors.New("too many requests")

// refuse writes an error response. Only this file maps kinds of errors to statuses
// and bodies. Internal errors are logged, and their text is not sent.
func (a *API) refuse(c *call, err error) {
	code, body := errorBody(err)
	if m, ok := errors.AsType[*project.Moved](err); ok {
		if to := c.movedTo(m); to != "" {
			c.w.Header().Set("Location", to)
			a.writeJSON(c.w, c.r, http.StatusMovedPermanently, messageJSON{"301 Moved Permanently - " + to})
			return
		}
	}
	switch code {
	case http.StatusTooManyRequests:
		// The text that administrators have set is sent unchanged.
		if s, err := a.Settings.Current(c); err == nil && s.RateLimitText != "" {
			c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			c.w.WriteHeader(code)
			_, _ = io.WriteString(c.w, s.RateLimitText+"\n")
			return
		}
	case http.StatusInternalServerError:
		if c.Err() != nil {
			return // the client has disconnected
		}
		a.Log.ErrorContext(c, "request failed", "method", c.r.Method, "path", c.r.URL.Path, "error", err)
	case http.StatusServiceUnavailable:
		c.w.Header().Set("Retry-After", errs.RetryAfter(err))
	case http.StatusUnauthorized:
		c.w.Header().Set("WWW-Authenticate", `Bearer realm="`+a.Site.Name+`", error="invalid_token"`)
	}
	a.writeJSON(c.w, c.r, code, body)
}

// movedTo returns the URL of this request with an ID in place of an old path. It
// is empty for writes, because clients repeat a redirected write as a GET request or
// not at all.
func (c *call) movedTo(m *project.Moved) string {
	if c.r.Method != http.MethodGet && c.r.Method != http.MethodHead {
		return ""
	}
	parts := strings.Split(c.r.URL.EscapedPath(), "/")
	for i, name := range strings.Split(prefix+c.route, "/") {
		if i >= len(parts) || !strings.HasPrefix(name, "{") {
			continue
		}
		if text, err := url.PathUnescape(parts[i]); err != nil || text != string(m.From) {
			continue
		}
		parts[i] = strconv.FormatInt(m.ID, 10)
		to := c.site.URL + strings.Join(parts, "/")
		if query := c.pageQuery().Encode(); query != "" {
			to += "?" + query
		}
		return to
	}
	return ""
}

func errorBody(err error) (int, any) {
	if m, ok := errors.AsType[*project.Moved](err); ok {
		return http.StatusNotFound, messageJSON{"404 " + m.Thing + " Not Found - " + m.Error()}
	}
	if e, ok := errs.As(err); ok && e.Kind == errs.KindUnavailable {
		return kindBody(e) // takes precedence over input errors, which it may cause
	}
	if e, ok := errors.AsType[*bind.ParamError](err); ok {
		return http.StatusBadRequest, errorJSON{e.Error()}
	}
	if e, ok := errors.AsType[*bind.InputError](err); ok {
		return inputStatus[e.Fault], errorJSON{e.Text}
	}
	if e, ok := errors.AsType[scopeError](err); ok {
		return http.StatusForbidden, scopeJSON{
			Error:       "insufficient_scope",
			Description: "The request requires higher privileges than provided by the access token.",
			Scope:       strings.Join(e, " "),
		}
	}
	if e, ok := errs.As(err); ok {
		return kindBody(e)
	}
	if _, refused := errors.AsType[limit.Refused](err); refused || errors.Is(err, errThrottled) {
		return http.StatusTooManyRequests, messageJSON{map[string]string{
			"error": "This endpoint has been requested too many times. Try again later.",
		}}
	}
	return http.StatusInternalServerError, messageJSON{"500 Internal Server Error"}
}

var inputStatus = map[bind.Fault]int{
	bind.FaultMalformed:  http.StatusBadRequest,
	bind.FaultIncomplete: http.StatusBadRequest,
	bind.FaultTooLarge:   http.StatusRequestEntityTooLarge,
	bind.FaultMediaType:  http.StatusUnsupportedMediaType,
}

func kindBody(e *errs.Error) (int, any) {
	switch e.Kind {
	case errs.KindInvalid:
		if len(e.Fields) > 0 {
			return http.StatusBadRequest, messageJSON{e.Fields}
		}
		if e.Code != "" {
			return http.StatusBadRequest, codedJSON{e.Text, e.Code}
		}
		if e.Bare {
			return http.StatusBadRequest, messageJSON{e.Text}
		}
		return http.StatusBadRequest, messageJSON{reason("400 Bad request", e.Text)}
	case errs.KindUnauthorized:
		return http.StatusUnauthorized, messageJSON{"401 Unauthorized"}
	case errs.KindForbidden:
		return http.StatusForbidden, messageJSON{reason("403 Forbidden", e.Text)}
	case errs.KindNotFound:
		if e.Text == "" {
			return http.StatusNotFound, messageJSON{"404 Not found"}
		}
		if e.Bare {
			return http.StatusNotFound, messageJSON{"404 " + e.Text}
		}
		return http.StatusNotFound, messageJSON{"404 " + e.Text + " Not Found"}
	case errs.KindConflict:
		if len(e.Fields) > 0 {
			return http.StatusConflict, messageJSON{e.Fields}
		}
		if e.Listed {
			return http.StatusConflict, messageJSON{[]string{e.Text}}
		}
		return http.StatusConflict, messageJSON{e.Text}
	case errs.KindPrecondition:
		return http.StatusPreconditionFailed, messageJSON{"412 Precondition Failed"}
	case errs.KindUnprocessable:
		if e.Listed {
			return http.StatusUnprocessableEntity, messageJSON{[]string{e.Text}}
		}
		return http.StatusUnprocessableEntity, messageJSON{e.Text}
	case errs.KindTooLarge:
		return http.StatusRequestEntityTooLarge, messageJSON{reason("413 Request Entity Too Large", e.Text)}
	case errs.KindNotAllowed:
		if e.Bare {
			return http.StatusMethodNotAllowed, messageJSON{e.Text}
		}
		return http.StatusMethodNotAllowed, errorJSON{e.Text}
	case errs.KindUnavailable:
		return http.StatusServiceUnavailable, messageJSON{reason("503 Service Unavailable", e.Text)}
	case errs.KindGone:
		return http.StatusGone, messageJSON{reason("410 Gone", e.Text)}
	case errs.KindNotAcceptable:
		return http.StatusNotAcceptable, messageJSON{e.Text}
	}
	return http.StatusInternalServerError, messageJSON{"500 Internal Server Error"}
}

func reason(status, text string) string {
	if text == "" {
		return status
	}
	return status + " - " + text
}
