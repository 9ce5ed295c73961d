package web

import (
	"time"

	"svc/internal/errs"
	"svc/internal/user"
)

func (w *Web) credentialPages() {
	w.page("GET /-/user_settings/ssh_keys", signedIn, w.keysPage)
	w.page("POST /-/user_settings/ssh_keys", signedIn, w.addKey)
	w.page("POST /-/user_settings/ssh_keys/{id}/delete", signedIn, w.deleteKey)
	w.gpgKeyPages()
	w.page("GET /-/user_settings/personal_access_tokens", signedIn, w.tokensPage)
	w.page("POST /-/user_settings/personal_access_tokens", signedIn, w.createToken)
	w.page("POST /-/user_settings/personal_access_tokens/{id}/revoke", signedIn, w.revokeToken)
}

type keysPage struct {
	Form form
	Keys []user.Key
}

func (keysPage) view() string  { return "user/settings_keys" }
func (keysPage) title() string { return "SSH keys" }

func (w *Web) keysPage(v *visit) error { return w.showKeys(v, filled()) }

func (w *Web) showKeys(v *visit, f form) error {
	page, err := w.Users.OwnKeys(v, v.actor, allOf())
	if err != nil {
		return err
	}
	f.only("title", "key", "expires_at")
	p := keysPage{Form: f, Keys: page.Items}
	return v.showForm(p, f)
}

func (w *Web) addKey(v *visit) error {
	n := user.NewKey{Title: v.text("title"), Key: v.text("key")}
	f := v.sent()
	if day := v.text("expires_at"); day != "" {
		at, err := time.Parse(time.DateOnly, day)
		if err != nil {
			f.Errors = map[string][]string{"expires_at": {"is not a date"}}
			return w.showKeys(v, f)
		}
		n.ExpiresAt = &at
	}
	if _, err := w.Users.AddOwnKey(v, v.actor, n); err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showKeys(v, f)
	}
	return v.done("The key was added.", "/-/user_settings/ssh_keys")
}

func (w *Web) deleteKey(v *visit) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	if err := w.Users.DeleteOwnKey(v, v.actor, id); err != nil {
		return err
	}
	return v.done("The key was removed.", "/-/user_settings/ssh_keys")
}

type tokensPage struct {
	Form   form
	Tokens []user.Token
	Scopes []scope
	Made   *user.Token // with its secret if it was just created
	Days   tokenSpan
}

type scope struct{ Name, Text string }

func (tokensPage) view() string  { return "user/settings_tokens" }
func (tokensPage) title() string { return "Access tokens" }

// scopeTexts describe the scopes.
func scopeTexts() map[string]string {
	return map[string]string{
		"api":              "Complete read and write access to the API, and to repositories over HTTP.",
		"read_api":         "Read access to the API.",
		"read_user":        "Read access to your profile and the profiles of other users.",
		"create_runner":    "Create runners.",
		"manage_runner":    "Manage runners.",
		"k8s_proxy":        "Access to clusters through agents.",
		"read_repository":  "Read-only access to repositories over HTTP.",
		"write_repository": "Read and write access to repositories over HTTP.",
		"sudo":             "API actions as any user of the instance (sudo).",
		"admin_mode":       "API actions as an administrator, where Admin Mode is required.",
		"openid":           "Authentication with OpenID Connect.",
		"profile":          "Read access to your profile with OpenID Connect.",
		"email":            "Read access to your primary email address with OpenID Connect.",
	}
}

func (w *Web) tokensPage(v *visit) error {
	return w.showTokens(v, w.newTokenForm(), nil)
}

func (w *Web) showTokens(v *visit, f form, made *user.Token) error {
	page, err := w.Users.Tokens(v, v.actor, user.TokenFilter{UserID: v.actor.ID, State: "active"}, allOf())
	if err != nil {
		return err
	}
	f.only("name", "expires_at", "scopes")
	p := tokensPage{Form: f, Tokens: page.Items, Made: made}
	if p.Days, err = w.tokenDays(v); err != nil {
		return err
	}
	texts := scopeTexts()
	for _, name := range user.OwnScopes(v.actor) {
		p.Scopes = append(p.Scopes, scope{name, texts[name]})
	}
	return v.showForm(p, f)
}

func (w *Web) createToken(v *visit) error {
	t, err := w.Users.CreatePersonalToken(v, v.actor, user.NewToken{
		Name: v.text("name"), Description: v.text("description"), Scopes: v.r.PostForm["scopes"], ExpiresAt: v.text("expires_at"),
	})
	if err != nil {
		f := v.sent()
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showTokens(v, f, nil)
	}
	return w.showTokens(v, w.newTokenForm(), t)
}

func (w *Web) revokeToken(v *visit) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	// Administrators can revoke all tokens; this page revokes only the user's own.
	t, err := w.Users.Token(v, v.actor, id)
	if err != nil {
		return err
	}
	if !v.actor.Is(t.UserID) {
		return errs.NotFound("")
	}
	if err := w.Users.RevokeToken(v, v.actor, id, nil); err != nil {
		return err
	}
	return v.done("The token was revoked.", "/-/user_settings/personal_access_tokens")
}
