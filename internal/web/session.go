package web

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/ci"
	"svc/internal/errs"
	"svc/internal/limit"
	"svc/internal/secret"
	"svc/internal/user"
)

// The cookies. Scripts can read only theme.
func (w *Web) sessionCookie() string { return "_" + w.Site.Cookies + "_session" }
func (w *Web) visitorCookie() string { return "_" + w.Site.Cookies + "_visitor" }
func (w *Web) halfwayCookie() string { return "_" + w.Site.Cookies + "_halfway" }
func (w *Web) flashCookie() string   { return "_" + w.Site.Cookies + "_flash" }

const (
	// longLife is the lifetime of a cookie in the browser; the server ends the
	// session earlier.
	longLife = 400 * 24 * time.Hour
	// maxForm is the maximum size of a form with a picture.
	maxForm = 1 << 20

	// maxFiles is the maximum size of a form with files for one commit. Larger
	// files are pushed.
	maxFiles = 16 << 20
)

// setCookie sets a cookie. A life of 0 keeps it until the browser is closed,
// and a negative one deletes it.
func (v *visit) setCookie(name, value, path string, life time.Duration) {
	http.SetCookie(v.w, &http.Cookie{
		Name: name, Value: value, Path: path, MaxAge: int(life / time.Second),
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: v.web.secure(),
	})
}

func (v *visit) cookie(name string) string {
	c, err := v.r.Cookie(name)
	if err != nil {
		return ""
	}
	return c.Value
}

// identify authenticates the visitor. An invalid cookie is deleted and counts
// as none.
func (v *visit) identify() error {
	v.actor.IP = v.ip()
	v.visitor = v.cookie(v.web.visitorCookie())
	token := v.cookie(v.web.sessionCookie())
	if token == "" {
		return nil
	}
	by, session, err := v.web.Users.Session(v, token, v.ip())
	if errs.Is(err, errs.KindUnauthorized) || errs.Is(err, errs.KindForbidden) {
		v.setCookie(v.web.sessionCookie(), "", "/", -time.Second)
		return nil
	}
	if err != nil {
		return err
	}
	v.actor, v.session = by, session
	limit.Identify(v, by.Account())
	if to, ok := v.w.(interface{ SetUser(string) }); ok {
		to.SetUser(by.Username)
	}
	return nil
}

// acceptToken authenticates the visitor by an access token, if they sent one: in the
// headers or the query, as for the API. Pages with files that programs download call
// it first. The token needs a scope that reads the API. Unauthorized; Forbidden;
// limit.Refused.
func (v *visit) acceptToken() error {
	token := v.sentToken()
	if token == "" {
		return nil
	}
	v.bearer = true
	by, err := v.web.Users.Authenticate(v, token, v.ip())
	if err != nil {
		return err
	}
	if !by.Has("api") && !by.Has("read_api") {
		return errs.Forbidden("The access token needs the scope read_api.")
	}
	v.actor, v.session = by, nil
	limit.Identify(v, by.Account())
	if to, ok := v.w.(interface{ SetUser(string) }); ok {
		to.SetUser(by.Username)
	}
	return nil
}

// sentToken returns the access token of the request; empty if there is none.
func (v *visit) sentToken() string {
	if token := v.r.Header.Get("Private-Token"); token != "" {
		return token
	}
	scheme, token, _ := strings.Cut(v.r.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); strings.EqualFold(scheme, "Bearer") && token != "" {
		return token
	}
	if token := v.param("private_token"); token != "" {
		return token
	}
	return v.param("access_token")
}

// reader authenticates the visitor again during a long response, without
// extending the session.
func (v *visit) reader() ci.Reader {
	first, token := v.actor, v.cookie(v.web.sessionCookie())
	return func(ctx context.Context) (actor.Actor, error) {
		if first.Anonymous() {
			return first, nil
		}
		return v.web.Users.RecheckSession(ctx, token, first.IP)
	}
}

// visited records that a signed-in user was active today, on the dashboard or on a
// page of a project.
func (v *visit) visited() error {
	if v.session == nil {
		return nil
	}
	return v.web.Users.Visited(v, v.session)
}

// enter sets the cookie of a new session. An earlier session of the browser
// ends, so that a planted cookie does not share the new one.
func (v *visit) enter(s *user.Session) error {
	if old := v.cookie(v.web.sessionCookie()); old != "" {
		if err := v.web.Users.SignOut(v, old); err != nil {
			return err
		}
	}
	var life time.Duration
	if s.Remember {
		life = longLife
	}
	v.setCookie(v.web.sessionCookie(), s.Token, "/", life)
	v.setCookie(v.web.visitorCookie(), "", "/", -time.Second)
	v.setCookie(v.web.halfwayCookie(), "", "/users", -time.Second)
	v.web.acceptInvites(v, s.UserID)
	return nil
}

// csrf returns the CSRF token for the forms of this page. For signed-in users
// it belongs to the session; for others it is derived from a cookie, which they
// get with the first page that has a form.
func (v *visit) csrf() string {
	if v.token == "" {
		v.token = secret.Mask(v.plainToken())
	}
	return v.token
}

func (v *visit) plainToken() string {
	if v.session != nil {
		return v.session.CSRF
	}
	if v.visitor == "" {
		v.visitor = secret.Token("")
		v.setCookie(v.web.visitorCookie(), v.visitor, "/", 0)
	}
	return v.web.visitorToken(v.visitor)
}

func (w *Web) visitorToken(visitor string) string {
	mac := hmac.New(sha256.New, w.visitors)
	mac.Write([]byte(visitor))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// checkForm reads a form and checks its CSRF token. Invalid, so that a user
// whose session has ended learns what to do.
func (v *visit) checkForm() error { return v.checkFormOf(maxForm) }

// checkFiles is checkForm for a form with files. Large forms of visitors who
// have not signed in are not read.
func (v *visit) checkFiles() error {
	if v.session == nil {
		return v.checkForm()
	}
	return v.checkFormOf(maxFiles)
}

func (v *visit) checkFormOf(most int64) error {
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, most)
	parse := v.r.ParseForm
	if kind, _, _ := mime.ParseMediaType(v.r.Header.Get("Content-Type")); kind == "multipart/form-data" {
		parse = func() error { return v.r.ParseMultipartForm(most) }
	}
	if err := parse(); err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return errs.TooLarge("The form is larger than the limit of %d MiB.", most>>20)
		}
		return errs.Invalid("The form cannot be read.").Because(err)
	}
	given := v.r.Header.Get("X-Csrf-Token")
	if given == "" {
		given = v.r.PostForm.Get("authenticity_token")
	}
	return v.checkToken(given)
}

// checkHeader is checkForm for a script that sends a file. Its body is left to
// the page.
func (v *visit) checkHeader() error { return v.checkToken(v.r.Header.Get("X-Csrf-Token")) }

// checkUpload is checkForm for a form whose last field is a file of any size: it
// reads the fields before it and leaves the file to the page.
func (v *visit) checkUpload() error {
	broken := errs.Invalid("The form cannot be read.")
	parts, err := v.r.MultipartReader()
	if errors.Is(err, http.ErrNotMultipart) { // there is no file in it
		return v.checkForm()
	}
	if err != nil {
		return broken.Because(err)
	}
	v.r.PostForm = url.Values{}
	for room := int64(maxForm); ; {
		part, err := parts.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			return broken.Because(err)
		}
		_, words, _ := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
		if name, isFile := words["filename"]; isFile {
			if name != "" { // browsers send an empty file for an unused field
				v.file = part
			}
			break
		}
		text, err := io.ReadAll(io.LimitReader(part, room+1))
		if err != nil {
			return broken.Because(err)
		}
		if room -= int64(len(text)); room < 0 {
			return errs.TooLarge("The form is larger than the limit of 1 MiB (without its file).")
		}
		v.r.PostForm.Add(part.FormName(), string(text))
	}
	return v.checkToken(v.r.PostForm.Get("authenticity_token"))
}

func (v *visit) checkToken(given string) error {
	want := ""
	switch {
	case v.session != nil:
		want = v.session.CSRF
	case v.visitor != "":
		want = v.web.visitorToken(v.visitor)
	}
	if want == "" || !secret.EqualMasked(given, want) {
		return errs.Invalid("The form has expired or came from another site. Go back, reload the page, then try again.")
	}
	return nil
}

// flash is a message that the next page shows.
type flash struct {
	Kind string `json:"kind"` // ok or bad
	Text string `json:"text"`
}

// setFlash sets the message that the next page shows. It must not hold secrets.
func (v *visit) setFlash(kind, text string) {
	b, _ := json.Marshal(flash{kind, text}) // texts always encode
	v.setCookie(v.web.flashCookie(), base64.RawURLEncoding.EncodeToString(b), "/", time.Minute)
}

// done sets a flash message and redirects.
func (v *visit) done(text, to string) error {
	v.setFlash("ok", text)
	return v.redirect(to)
}

func (v *visit) takeFlash() *flash {
	value := v.cookie(v.web.flashCookie())
	if value == "" {
		return nil
	}
	v.setCookie(v.web.flashCookie(), "", "/", -time.Second)
	var f flash
	b, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil || json.Unmarshal(b, &f) != nil || f.Text == "" {
		return nil
	}
	if f.Kind != "ok" {
		f.Kind = "bad"
	}
	return &f
}
