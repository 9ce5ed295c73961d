package sites

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"svc/internal/errs"
	"svc/internal/httpreq"
	"svc/internal/oauth"
	"svc/internal/secret"
)

// Visitors of a private site sign in at the instance by OAuth:
//
//	site                       sets a cookie with the PKCE verifier
//	shared host, /auth/begin   sets a cookie that identifies the browser
//	instance, /oauth/authorize gives a code for the challenge
//	shared host, /auth         seals the code for the origin of the site and the challenge
//	site, /-/pages/auth        opens it, redeems the code, sets the session cookie
//
// The owner of a custom domain can read and forge all requests to that domain, and
// can make visitors follow links. Therefore the state is bound to the origin, to the
// challenge and to the browser, and the sealed code that a domain receives can only
// be used for a session on the same origin, in the browser that has the verifier.

const (
	authPath     = "/-/pages/auth" // on each site
	beginPath    = "/auth/begin"   // on the shared host
	callbackPath = "/auth"         // on the shared host
	stateTime    = 10 * time.Minute
	maxBack      = 1500
)

// ClientID returns the client ID of the OAuth application by which visitors sign in.
func (d *Handler) ClientID() string { return d.Name + "-pages" }

// CallbackURL returns the redirect URI of that application, on the shared host.
func (d *Handler) CallbackURL() string { return d.Pages.Place.Below("projects") + callbackPath }

// Scopes returns the scopes of that application.
func (d *Handler) Scopes() []string { return []string{"openid"} }

// state is the OAuth state parameter. It is sealed.
type state struct {
	Origin    string    `json:"o"` // of the site
	Back      string    `json:"b"` // the requested path
	Challenge string    `json:"c"` // of the verifier in the cookie of the site
	Browser   string    `json:"n"` // digest of the cookie of the shared host; empty before the first request to that host
	At        time.Time `json:"t"`
}

// The places for which values are sealed. A value that was sealed for one place
// cannot be opened for another.
const (
	requestPlace = "pages_request" // state in the request to the shared host
	statePlace   = "pages_state"   // state in the authorization request and after it
)

func sessionPlace(host string) string           { return "pages_session/" + host }
func verifierPlace(host string) string          { return sessionPlace(host) + "/verifier" }
func codePlace(origin, challenge string) string { return "pages_code/" + challenge + "/" + origin }

// cookie returns the name of a cookie. Over TLS it has the prefix __Host-, so that
// other hosts of the domain cannot set it.
func (d *Handler) cookie(r *http.Request, name string) string {
	name = "_" + d.Name + "_pages" + name
	if d.Secure(r) {
		return "__Host-" + name
	}
	return name
}

// origin returns the origin of a site in the browser. It contains only a configured
// port, because clients can send any port in the Host header.
func (d *Handler) origin(r *http.Request) string {
	place, name := d.Pages.Place, hostName(r.Host)
	if label, below := strings.CutSuffix(name, "."+place.Host()); below && (place.Secure() || !d.Secure(r)) {
		return place.Below(label)
	}
	scheme, port := "http://", ""
	if d.Secure(r) {
		scheme, port = "https://", place.TLSPort
	} else if u, err := url.Parse(place.URL); err == nil && !place.Secure() {
		port = u.Port()
	}
	if _, asked, err := net.SplitHostPort(r.Host); err != nil || asked != port {
		port = ""
	}
	if port != "" {
		port = ":" + port
	}
	return scheme + name + port
}

// begin starts the sign-in of a visitor with a redirect to the shared host.
func (d *Handler) begin(w http.ResponseWriter, r *http.Request, host string) error {
	w.Header().Set("Cache-Control", "no-store")
	origin := d.origin(r)
	back := r.URL.EscapedPath() + query(r)
	if strings.HasPrefix(origin, "https://") && !d.Secure(r) {
		http.Redirect(w, r, origin+localPath(back), http.StatusFound)
		return nil
	}
	if len(back) > maxBack {
		back = "/"
	}
	// A second tab uses the verifier of the first, so that the sign-in can be
	// completed in both.
	verifier := d.unsealCookie(r, "_state", verifierPlace(host))
	if verifier == "" {
		verifier = secret.Token("") + secret.Token("")
	}
	sealed, err := d.seal(state{Origin: origin, Back: back, Challenge: oauth.Challenge(verifier), At: d.Now()}, requestPlace)
	if err != nil {
		return err
	}
	d.setCookie(w, r, "_state", d.Keys.Seal([]byte(verifier), verifierPlace(host)), stateTime)
	http.Redirect(w, r, d.Pages.Place.Below("projects")+beginPath+"?"+url.Values{"request": {sealed}}.Encode(), http.StatusFound)
	return nil
}

// shared handles requests to the host that all sites share.
func (d *Handler) shared(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	switch r.URL.Path {
	case beginPath:
		return d.authorize(w, r)
	case callbackPath:
		return d.handOver(w, r)
	}
	return errs.NotFound("")
}

// authorize binds the state to the browser and redirects the visitor to the
// instance.
func (d *Handler) authorize(w http.ResponseWriter, r *http.Request) error {
	s, err := d.open(r.FormValue("request"), requestPlace)
	if err != nil {
		return err
	}
	browser := d.unsealCookie(r, "_browser", sessionPlace(hostName(r.Host)))
	if browser == "" {
		browser = secret.Token("")
	}
	d.setCookie(w, r, "_browser", d.Keys.Seal([]byte(browser), sessionPlace(hostName(r.Host))), stateTime)
	s.Browser = secret.Digest(browser)
	sealed, err := d.seal(*s, statePlace)
	if err != nil {
		return err
	}
	to := d.External + "/oauth/authorize?" + url.Values{
		"client_id": {d.ClientID()}, "redirect_uri": {d.CallbackURL()}, "response_type": {"code"}, "scope": {strings.Join(d.Scopes(), " ")},
		"state": {sealed}, "code_challenge": {s.Challenge}, "code_challenge_method": {"S256"},
	}.Encode()
	http.Redirect(w, r, to, http.StatusFound)
	return nil
}

// handOver redirects the visitor to the site where the sign-in started, with the
// code sealed for that site. The origin is read only from the sealed state, and only
// the browser that started the sign-in is redirected.
func (d *Handler) handOver(w http.ResponseWriter, r *http.Request) error {
	s, err := d.open(r.FormValue("state"), statePlace)
	if err != nil {
		return err
	}
	browser := d.unsealCookie(r, "_browser", sessionPlace(hostName(r.Host)))
	if browser == "" || !secret.Equal(secret.Digest(browser), s.Browser) {
		return notBegun()
	}
	values := url.Values{"state": {r.FormValue("state")}}
	if code := r.FormValue("code"); code != "" {
		values.Set("code", d.Keys.Seal([]byte(code), codePlace(s.Origin, s.Challenge)))
	}
	http.Redirect(w, r, s.Origin+authPath+"?"+values.Encode(), http.StatusFound)
	return nil
}

// finish completes the sign-in on the site: it exchanges the code for a session.
func (d *Handler) finish(w http.ResponseWriter, r *http.Request, host string) error {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	s, err := d.open(r.FormValue("state"), statePlace)
	if err != nil {
		return err
	}
	verifier := d.unsealCookie(r, "_state", verifierPlace(host))
	if verifier == "" || s.Origin != d.origin(r) || !secret.Equal(oauth.Challenge(verifier), s.Challenge) {
		return notBegun()
	}
	if r.FormValue("code") == "" {
		d.setCookie(w, r, "_state", "", 0)
		return errs.Forbidden("the sign-in was refused")
	}
	code, err := d.Keys.Open(r.FormValue("code"), codePlace(s.Origin, s.Challenge))
	if err != nil {
		return notBegun().Because(err)
	}
	d.setCookie(w, r, "_state", "", 0)
	tokens, err := d.OAuth.RedeemBuiltin(r.Context(), oauth.TokenRequest{
		ClientID: d.ClientID(), Code: string(code), RedirectURI: d.CallbackURL(), Verifier: verifier, IP: httpreq.IP(r),
	})
	if refused, ok := errors.AsType[*oauth.Error](err); ok {
		return errs.Invalid("the code of the sign-in is not valid").Because(refused)
	}
	if err != nil {
		return err
	}
	d.setCookie(w, r, "", d.Keys.Seal([]byte(tokens.AccessToken), sessionPlace(host)), oauth.TokenLife)
	http.Redirect(w, r, localPath(s.Back), http.StatusFound)
	return nil
}

func notBegun() *errs.Error { return errs.Invalid("the sign-in was not started in this browser") }

func (d *Handler) seal(s state, place string) (string, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	return d.Keys.Seal(text, place), nil
}

// open opens a state that was sealed for the place at most stateTime ago. It returns
// Invalid for any other text.
func (d *Handler) open(sealed, place string) (*state, error) {
	broken := errs.Invalid("the state of the sign-in is invalid or has expired")
	text, err := d.Keys.Open(sealed, place)
	if err != nil {
		return nil, broken.Because(err)
	}
	var s state
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, broken.Because(err)
	}
	if age := d.Now().Sub(s.At); age < 0 || age > stateTime {
		return nil, broken
	}
	return &s, nil
}

func (d *Handler) setCookie(w http.ResponseWriter, r *http.Request, name, value string, life time.Duration) {
	c := &http.Cookie{
		Name: d.cookie(r, name), Value: value, Path: "/", MaxAge: int(life.Seconds()), HttpOnly: true, Secure: d.Secure(r), SameSite: http.SameSiteLaxMode,
	}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// unsealCookie returns the value of a cookie that was sealed for the place, or "" if
// there is no such cookie.
func (d *Handler) unsealCookie(r *http.Request, name, place string) string {
	sealed, err := r.Cookie(d.cookie(r, name))
	if err != nil {
		return ""
	}
	value, err := d.Keys.Open(sealed.Value, place)
	if err != nil {
		return ""
	}
	return string(value)
}

// localPath returns a path, or "/" if a browser could interpret it as a URL of
// another host.
func localPath(text string) string {
	if !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") || strings.HasPrefix(text, `/\`) {
		return "/"
	}
	return text
}
