package sites

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"svc/internal/errs"
	"svc/internal/oauth"
	"svc/internal/secret"
)

// A visitor of a site that is not for everybody signs in at the installation,
// as at any other application: he is sent there, comes back with a code to one
// host that all sites share, and is passed on to the site where he began. There
// the code becomes a token, which the browser keeps sealed in a cookie of that
// host alone. The verifier of the code is in another cookie of that host from
// the beginning, so nobody else can end what a browser began.

const (
	authPath     = "/-/pages/auth" // on each site
	callbackPath = "/auth"         // on the shared host
	stateTime    = 10 * time.Minute
	maxBack      = 1500
)

// ClientID names the application by which visitors sign in.
func (d *Door) ClientID() string { return d.Name + "-pages" }

// CallbackURL is where visitors come back to.
func (d *Door) CallbackURL() string { return d.Pages.Place.Below("projects") + callbackPath }

// Scopes are what the application may ask for: to know who somebody is.
func (d *Door) Scopes() []string { return []string{"openid"} }

// state is what is carried through the sign-in, sealed.
type state struct {
	Origin string    `json:"o"` // of the site
	Back   string    `json:"b"` // the path where the visitor was
	At     time.Time `json:"t"`
}

const statePlace = "pages_state"

func (d *Door) cookie(name string) string { return "_" + d.Name + "_pages" + name }

func sessionPlace(host string) string { return "pages_session/" + host }

// begin sends a visitor to sign in.
func (d *Door) begin(w http.ResponseWriter, r *http.Request, host string) error {
	verifier := secret.Token("") + secret.Token("")
	verifier = verifier[:min(len(verifier), 100)]
	secure := d.Secure(r)
	origin := "http://" + strings.ToLower(r.Host)
	if secure {
		origin = "https://" + strings.ToLower(r.Host)
	}
	back := r.URL.EscapedPath() + query(r)
	if len(back) > maxBack {
		back = "/"
	}
	carried, err := json.Marshal(state{origin, back, d.Now()})
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(verifier))
	to := d.External + "/oauth/authorize?" + url.Values{
		"client_id": {d.ClientID()}, "redirect_uri": {d.CallbackURL()}, "response_type": {"code"}, "scope": {strings.Join(d.Scopes(), " ")},
		"state": {d.Keys.Seal(carried, statePlace)}, "code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}.Encode()
	d.setCookie(w, r, "_state", d.Keys.Seal([]byte(verifier), sessionPlace(host)+"/verifier"), stateTime)
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, to, http.StatusFound)
	return nil
}

func (d *Door) setCookie(w http.ResponseWriter, r *http.Request, name, value string, life time.Duration) {
	c := &http.Cookie{
		Name: d.cookie(name), Value: value, Path: "/", MaxAge: int(life.Seconds()), HttpOnly: true, Secure: d.Secure(r), SameSite: http.SameSiteLaxMode,
	}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// open reads a state that we have made not long ago.
func (d *Door) open(r *http.Request) (*state, *url.URL, error) {
	broken := errs.Invalid("the state of the sign-in is broken or too old")
	text, err := d.Keys.Open(r.FormValue("state"), statePlace)
	if err != nil {
		return nil, nil, broken.Because(err)
	}
	var s state
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, nil, broken.Because(err)
	}
	origin, err := url.Parse(s.Origin)
	if age := d.Now().Sub(s.At); err != nil || age < 0 || age > stateTime {
		return nil, nil, broken
	}
	return &s, origin, nil
}

// signedIn passes a visitor on to the site where he began. Nothing but what we
// sealed ourselves says where that is.
func (d *Door) signedIn(w http.ResponseWriter, r *http.Request) error {
	if r.URL.Path != callbackPath {
		return errs.NotFound("")
	}
	s, origin, err := d.open(r)
	if err != nil {
		return err
	}
	if hostName(origin.Host) == d.Pages.Place.AuthHost() {
		return errs.Invalid("the state of the sign-in is of no site")
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	values := url.Values{"state": {r.FormValue("state")}}
	if code := r.FormValue("code"); code != "" {
		values.Set("code", code)
	}
	http.Redirect(w, r, s.Origin+authPath+"?"+values.Encode(), http.StatusFound)
	return nil
}

// finish ends the sign-in on the site: the code becomes a token.
func (d *Door) finish(w http.ResponseWriter, r *http.Request, host string) error {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	s, origin, err := d.open(r)
	if err != nil {
		return err
	}
	sealed, err := r.Cookie(d.cookie("_state"))
	if err != nil || !strings.EqualFold(origin.Host, r.Host) {
		return errs.Invalid("the sign-in was not begun here")
	}
	verifier, err := d.Keys.Open(sealed.Value, sessionPlace(host)+"/verifier")
	if err != nil {
		return errs.Invalid("the sign-in was not begun here").Because(err)
	}
	d.setCookie(w, r, "_state", "", 0)
	if r.FormValue("code") == "" {
		return errs.Forbidden("the sign-in was refused")
	}
	tokens, err := d.OAuth.Exchange(r.Context(), oauth.TokenRequest{
		GrantType: "authorization_code", ClientID: d.ClientID(), Code: r.FormValue("code"), RedirectURI: d.CallbackURL(), Verifier: string(verifier),
		IP: hostName(r.RemoteAddr),
	})
	if refused, ok := errors.AsType[*oauth.Error](err); ok {
		return errs.Invalid("the code of the sign-in is not good").Because(refused)
	}
	if err != nil {
		return err
	}
	d.setCookie(w, r, "", d.Keys.Seal([]byte(tokens.AccessToken), sessionPlace(host)), oauth.TokenLife)
	http.Redirect(w, r, localPath(s.Back), http.StatusFound)
	return nil
}

// localPath makes sure that an address stays on its host.
func localPath(text string) string {
	if !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") || strings.HasPrefix(text, `/\`) {
		return "/"
	}
	return text
}

// token is what the browser keeps of a visitor; empty without anything good.
func (d *Door) token(r *http.Request, host string) string {
	sealed, err := r.Cookie(d.cookie(""))
	if err != nil {
		return ""
	}
	token, err := d.Keys.Open(sealed.Value, sessionPlace(host))
	if err != nil {
		return ""
	}
	return string(token)
}
