package api

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"svc/internal/errs"
	"svc/internal/httpreq"
	"svc/internal/limit"
	"svc/internal/oauth"
)

// maxOAuthBody is the limit of a request body in bytes.
const maxOAuthBody = 64 << 10

func (a *API) oauthRoutes() {
	a.mux.Post(tokenPath, a.giveTokens)
	a.mux.Post(revokePath, a.revokeTokens)
	a.mux.Get(tokenInfoPath, a.tokenInfo)
	a.mux.Get(userInfoPath, a.userInfo)
	a.mux.Post(userInfoPath, a.userInfo)
	a.mux.Post(devicePath, a.noDevices)
}

// preflights are the methods of the paths that allow CORS preflight requests.
var preflights = map[string]string{tokenPath: "POST", revokePath: "POST", userInfoPath: "GET, POST"}

// serveOAuth serves the paths of OpenIDPath. Pages of other origins may use them
// with tokens and client credentials, never with cookies. They may send only the
// headers Authorization and Content-Type.
func (a *API) serveOAuth(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h["Vary"] = varyOrigin
	if to, ok := w.(routed); ok {
		to.SetRoute(r.URL.Path)
	}
	if r.Header.Get("Origin") != "" && r.URL.Path != devicePath {
		h.Set("Access-Control-Allow-Origin", "*")
	}
	methods, preflight := preflights[r.URL.Path]
	if r.Method == http.MethodOptions && preflight {
		h.Set("Access-Control-Allow-Methods", methods)
		h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type")
		h.Set("Access-Control-Max-Age", "7200")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	r.URL.RawPath = r.URL.EscapedPath()
	a.mux.ServeHTTP(w, r)
}

type tokensJSON struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int64  `json:"expires_in"`
	RefreshToken string `json:"refresh_token,omitempty"`
	Scope        string `json:"scope"`
	CreatedAt    int64  `json:"created_at"`
	IDToken      string `json:"id_token,omitempty"`
}

// giveTokens: https://docs.gitlab.com/api/oauth2/
func (a *API) giveTokens(w http.ResponseWriter, r *http.Request) {
	values, err := oauthForm(w, r)
	if err != nil {
		a.refuseOAuth(w, r, err)
		return
	}
	request := oauth.TokenRequest{
		GrantType: values.Get("grant_type"), Code: values.Get("code"), RedirectURI: values.Get("redirect_uri"), Verifier: values.Get("code_verifier"),
		RefreshToken: values.Get("refresh_token"), Username: values.Get("username"), Password: values.Get("password"), Scope: values.Get("scope"),
		IP: httpreq.IP(r),
	}
	if request.ClientID, request.ClientSecret, err = clientOf(r, values); err != nil {
		a.refuseOAuth(w, r, err)
		return
	}
	if request.GrantType == "password" {
		settings, err := a.Settings.Current(r.Context())
		if err != nil {
			a.refuseOAuth(w, r, err)
			return
		}
		decision := a.Limits.Allow(limit.AddressKey(request.IP)+" "+strings.ToLower(request.Username), perMinute("oauth_token", settings.SignInsPerMinute))
		decision.Headers(w.Header())
		if !decision.OK {
			a.refuseOAuth(w, r, errThrottled)
			return
		}
	}
	t, err := a.OAuth.Exchange(r.Context(), request)
	if err != nil {
		a.refuseOAuth(w, r, err)
		return
	}
	a.writeOAuth(w, r, http.StatusOK, tokensJSON{
		AccessToken: t.AccessToken, TokenType: "bearer", ExpiresIn: int64(oauth.TokenLife / time.Second), RefreshToken: t.RefreshToken,
		Scope: strings.Join(t.Scopes, " "), CreatedAt: t.CreatedAt.Unix(), IDToken: t.IDToken,
	})
}

// revokeTokens: https://docs.gitlab.com/api/oauth2/#revoke-a-token
func (a *API) revokeTokens(w http.ResponseWriter, r *http.Request) {
	values, err := oauthForm(w, r)
	if err != nil {
		a.refuseOAuth(w, r, err)
		return
	}
	id, secret, err := clientOf(r, values)
	if err == nil {
		err = a.OAuth.Revoke(r.Context(), id, secret, values.Get("token"))
	}
	if err != nil {
		a.refuseOAuth(w, r, err)
		return
	}
	a.writeOAuth(w, r, http.StatusOK, struct{}{})
}

type tokenInfoJSON struct {
	ResourceOwnerID  int64                 `json:"resource_owner_id"`
	Scope            []string              `json:"scope"`
	ExpiresIn        int64                 `json:"expires_in"`
	Application      *tokenApplicationJSON `json:"application"`
	CreatedAt        int64                 `json:"created_at"`
	Scopes           []string              `json:"scopes"`             // deprecated: scope
	ExpiresInSeconds int64                 `json:"expires_in_seconds"` // deprecated: expires_in
}

type tokenApplicationJSON struct {
	UID string `json:"uid"`
}

// tokenInfo: https://docs.gitlab.com/api/oauth2/#retrieve-the-token-information
func (a *API) tokenInfo(w http.ResponseWriter, r *http.Request) {
	info, err := a.OAuth.Info(r.Context(), bearerOf(r, nil), httpreq.IP(r))
	if err != nil {
		a.refuseToken(w, r, err)
		return
	}
	left := int64(info.ExpiresAt.Sub(a.Now()) / time.Second)
	form := tokenInfoJSON{
		ResourceOwnerID: info.UserID, Scope: info.Scopes, ExpiresIn: left, CreatedAt: info.CreatedAt.Unix(), Scopes: info.Scopes, ExpiresInSeconds: left,
	}
	if info.Application != "" {
		form.Application = &tokenApplicationJSON{info.Application}
	}
	a.writeOAuth(w, r, http.StatusOK, form)
}

// userInfo: https://docs.gitlab.com/integration/openid_connect_provider/
func (a *API) userInfo(w http.ResponseWriter, r *http.Request) {
	var values url.Values
	if r.Method == http.MethodPost {
		var err error
		if values, err = oauthForm(w, r); err != nil {
			a.refuseOAuth(w, r, err)
			return
		}
	}
	by, err := a.Users.Authenticate(r.Context(), bearerOf(r, values), httpreq.IP(r))
	if err != nil {
		a.refuseToken(w, r, err)
		return
	}
	if to, ok := w.(routed); ok {
		to.SetUser(by.Username)
	}
	claims, err := a.OAuth.UserInfo(r.Context(), by)
	if errs.Is(err, errs.KindForbidden) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="`+a.Site.Name+`", error="insufficient_scope", scope="openid"`)
		a.writeOAuth(w, r, http.StatusForbidden, scopeJSON{"insufficient_scope", "The token needs the scope openid.", "openid"})
		return
	}
	if err != nil {
		a.refuseOAuth(w, r, err)
		return
	}
	a.writeOAuth(w, r, http.StatusOK, claims)
}

// noDevices rejects the device authorization grant, which is not supported.
func (a *API) noDevices(w http.ResponseWriter, r *http.Request) {
	a.writeOAuth(w, r, http.StatusNotFound, oauthErrorJSON{oauth.UnsupportedGrant, "The device authorization grant is not supported."})
}

// bearerOf returns the bearer token of a request: RFC 6750.
func bearerOf(r *http.Request, values url.Values) string {
	if scheme, rest, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(rest)
	}
	if token := values.Get("access_token"); token != "" {
		return token
	}
	return queryValue(r.URL.RawQuery, "access_token")
}

// oauthForm parses the parameters in the body of a request. The query is not read,
// because URLs are written to logs. A repeated parameter is an error.
func oauthForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxOAuthBody)
	unreadable := &oauth.Error{Code: oauth.InvalidRequest, Description: "The body cannot be read."}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	values := url.Values{}
	switch kind {
	case "application/json":
		var object map[string]any
		body, err := io.ReadAll(r.Body)
		if err != nil || len(body) > 0 && json.Unmarshal(body, &object) != nil {
			return nil, unreadable
		}
		for name, value := range object {
			if text, ok := value.(string); ok {
				values.Set(name, text)
			} else if value != nil {
				return nil, unreadable
			}
		}
	case "multipart/form-data":
		if err := r.ParseMultipartForm(maxOAuthBody); err != nil {
			return nil, unreadable
		}
		values = r.MultipartForm.Value
	default:
		if err := r.ParseForm(); err != nil {
			return nil, unreadable
		}
		values = r.PostForm
	}
	for name, list := range values {
		if len(list) > 1 {
			return nil, &oauth.Error{Code: oauth.InvalidRequest, Description: "The request has the parameter " + name + " more than once."}
		}
	}
	return values, nil
}

// clientOf returns the client credentials from the header or from the body. If both
// have credentials that differ, it returns an error.
func clientOf(r *http.Request, values url.Values) (id, secret string, err error) {
	id, secret = values.Get("client_id"), values.Get("client_secret")
	user, password, ok := r.BasicAuth()
	if !ok || user == "" && password == "" { // some libraries send empty credentials if there is no client
		return id, secret, nil
	}
	// The ID and the secret are URL-encoded: RFC 6749, section 2.3.1.
	user, errUser := url.QueryUnescape(user)
	password, errPassword := url.QueryUnescape(password)
	if errUser != nil || errPassword != nil || user == "" {
		return "", "", &oauth.Error{Code: oauth.InvalidClient, Description: "The client credentials in the header cannot be read."}
	}
	if id != "" && id != user || secret != "" && secret != password {
		return "", "", &oauth.Error{Code: oauth.InvalidRequest, Description: "The client credentials are sent in two ways that differ."}
	}
	return user, password, nil
}

// oauthErrorJSON is an error body: RFC 6749.
type oauthErrorJSON struct {
	Error       string `json:"error"`
	Description string `json:"error_description"`
}

// tokenErrorJSON is the error body for an invalid token.
type tokenErrorJSON struct {
	oauthErrorJSON
	State string `json:"state"`
}

// refuseToken rejects a request with an invalid token.
func (a *API) refuseToken(w http.ResponseWriter, r *http.Request, err error) {
	if !errs.Is(err, errs.KindUnauthorized) && !errs.Is(err, errs.KindForbidden) {
		a.refuseOAuth(w, r, err)
		return
	}
	text := "The access token is invalid"
	if e, ok := errors.AsType[*errs.Error](err); ok && e.Kind == errs.KindUnauthorized {
		switch {
		case strings.Contains(e.Text, "expired"):
			text = "The access token expired"
		case strings.Contains(e.Text, "revoked"):
			text = "The access token was revoked"
		}
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="`+a.Site.Name+`", error="invalid_token", error_description="`+text+`"`)
	a.writeOAuth(w, r, http.StatusUnauthorized, tokenErrorJSON{oauthErrorJSON{"invalid_token", text}, "unauthorized"})
}

// refuseOAuth writes an error of the protocol. Internal errors are logged.
func (a *API) refuseOAuth(w http.ResponseWriter, r *http.Request, err error) {
	if refused, ok := errors.AsType[*oauth.Error](err); ok {
		code := http.StatusBadRequest
		switch refused.Code {
		case oauth.InvalidClient:
			code = http.StatusUnauthorized
			scheme := "Bearer"
			if _, _, ok := r.BasicAuth(); ok { // otherwise browsers would ask for a password
				scheme = "Basic"
			}
			w.Header().Set("WWW-Authenticate", scheme+` realm="`+a.Site.Name+`", error="invalid_client"`)
		case oauth.UnauthorizedClient:
			code = http.StatusForbidden
		}
		a.writeOAuth(w, r, code, oauthErrorJSON{refused.Code, refused.Description})
		return
	}
	tooMany, refused := errors.AsType[limit.Refused](err)
	if refused {
		tooMany.Headers(w.Header())
	}
	if refused || errors.Is(err, errThrottled) {
		a.writeOAuth(w, r, http.StatusTooManyRequests, oauthErrorJSON{"temporarily_unavailable", "There were too many requests. Try again later."})
		return
	}
	if e, ok := errs.As(err); ok && e.Kind == errs.KindUnavailable {
		w.Header().Set("Retry-After", errs.RetryAfter(err))
		a.writeOAuth(w, r, http.StatusServiceUnavailable, oauthErrorJSON{"temporarily_unavailable", e.Text})
		return
	}
	if r.Context().Err() != nil {
		return // the client has disconnected
	}
	a.Log.ErrorContext(r.Context(), "request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	a.writeOAuth(w, r, http.StatusInternalServerError, oauthErrorJSON{"server_error", "Something went wrong on the server."})
}

// writeOAuth writes a response that must not be cached.
func (a *API) writeOAuth(w http.ResponseWriter, r *http.Request, code int, body any) {
	text, err := a.encoders.appendJSON(nil, body)
	if err != nil {
		a.Log.ErrorContext(r.Context(), "encode response", "error", err)
		code, text = http.StatusInternalServerError, []byte(`{"error":"server_error"}`)
	}
	h := w.Header()
	h["Content-Type"] = jsonHeader
	h.Set("Cache-Control", "no-store")
	h.Set("Pragma", "no-cache")
	w.WriteHeader(code)
	_, _ = w.Write(text) // the client may have disconnected
}
