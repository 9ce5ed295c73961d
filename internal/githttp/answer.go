package githttp

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"svc/internal/errs"
	"svc/internal/limit"
	"svc/internal/project"
)

// errNoProject is the error for paths that cannot name a project.
var errNoProject = errs.NotFound("Project")

// refuse responds to a request with an error. Git shows the text after "remote:" if
// it is plain text.
func (x *exchange) refuse(err error) {
	if moved, ok := errors.AsType[*project.Moved](err); ok {
		x.redirect(moved)
		return
	}
	if refused, ok := errors.AsType[limit.Refused](err); ok {
		refused.Headers(x.w.Header())
		x.say(http.StatusTooManyRequests, refused.Error())
		return
	}
	status, text := x.statusOf(err)
	if status == http.StatusInternalServerError {
		if !errors.Is(err, context.Canceled) {
			x.Log.ErrorContext(x.r.Context(), "git request over HTTP failed", "service", x.service, "project", string(x.project), "error", err)
		}
		x.Count(x.service, "failed")
		x.write(status, text)
		return
	}
	x.say(status, text)
}

// statusOf maps an error to an HTTP status and a text. Anonymous requests get 401
// whether the project exists or not, so that they do not reveal which projects
// exist.
func (x *exchange) statusOf(err error) (int, string) {
	refused, ok := errs.As(err)
	if !ok {
		return http.StatusInternalServerError, "Something went wrong on the server. Please try again."
	}
	switch refused.Kind {
	case errs.KindUnauthorized:
		if !x.anonymous && x.known() { // a deploy token without access to the project
			return http.StatusForbidden, x.mayNot()
		}
		return http.StatusUnauthorized, or(refused.Text, "Please sign in: with your username and password, or a token in place of the password.")
	case errs.KindNotFound:
		if x.anonymous {
			return http.StatusUnauthorized, "Please sign in."
		}
		return http.StatusNotFound, "The project does not exist, or you don't have access to it."
	case errs.KindForbidden:
		return http.StatusForbidden, or(refused.Text, x.mayNot())
	case errs.KindConflict:
		return http.StatusConflict, refused.Text
	case errs.KindUnavailable:
		x.w.Header().Set("Retry-After", errs.RetryAfter(refused))
		return http.StatusServiceUnavailable, refused.Text
	case errs.KindTooLarge:
		return http.StatusRequestEntityTooLarge, refused.Text
	}
	return http.StatusBadRequest, refused.Text
}

// known reports whether the credential was accepted.
func (x *exchange) known() bool { return !x.by.Anonymous() || x.by.Deploy != nil }

func (x *exchange) mayNot() string {
	if x.service == receivePack || x.changes {
		return "You are not allowed to push code to this project."
	}
	return "You are not allowed to download code from this project."
}

func or(text, usual string) string {
	if text == "" {
		return usual
	}
	return text
}

// redirect responds with the new URL of a moved project. Git follows redirects of
// its first request only, and then uses the new URL; other requests get 404.
func (x *exchange) redirect(to *project.Moved) {
	text := "The project has moved to " + to.Path + ". Please use the new address: git remote set-url origin …/" + to.Path + ".git"
	if x.r.Method != http.MethodGet && x.r.Method != http.MethodHead {
		x.say(http.StatusNotFound, text)
		return
	}
	there := url.URL{Path: "/" + to.Path + ".git/" + infoRefs, RawQuery: "service=" + x.service}
	x.w.Header().Set("Location", there.String())
	x.Count(x.service, "ok")
	x.write(http.StatusMovedPermanently, text)
}

// say responds with a status and a text.
func (x *exchange) say(status int, text string) {
	if x.service != "" {
		x.Count(x.service, "refused")
	}
	x.write(status, text)
}

func (x *exchange) write(status int, text string) {
	h := x.w.Header()
	if status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Basic realm="`+strings.NewReplacer(`"`, "", `\`, "").Replace(x.Name)+`", charset="UTF-8"`)
	}
	h.Set("Content-Type", "text/plain; charset=utf-8")
	noCache(h)
	x.w.WriteHeader(status)
	_, _ = x.w.Write([]byte(text + "\n")) // the client may have disconnected
}

// noCache sets the headers that prevent caches, including those of HTTP/1.0, from
// storing refs.
func noCache(h http.Header) {
	h.Set("Cache-Control", "no-cache, max-age=0, must-revalidate")
	h.Set("Expires", "Fri, 01 Jan 1980 00:00:00 GMT")
	h.Set("Pragma", "no-cache")
}
