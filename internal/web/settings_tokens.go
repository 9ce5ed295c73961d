package web

import (
	"time"

	"svc/internal/project"
	"svc/internal/user"
)

func (w *Web) placeTokenPages() {
	w.settingsPage("GET settings/access_tokens", w.placeTokens)
	w.settingsPage("POST settings/access_tokens", w.createPlaceToken)
	w.settingsPage("POST settings/access_tokens/{id}/revoke", w.revokePlaceToken)
}

type placeTokensPage struct {
	setup
	Form   form
	Tokens []project.AccessToken
	Scopes []scope
	Made   *project.AccessToken // with its secret if it was just created
	Days   tokenSpan
	Pager  pager
}

// tokenSpan is the first and the last possible expiration date of a token.
type tokenSpan struct{ First, Last string }

func (placeTokensPage) view() string    { return "shared/settings_tokens" }
func (p placeTokensPage) title() string { return "Access tokens · " + p.Name() }

// newTokenForm returns a form with an expiration date in 30 days.
func (w *Web) newTokenForm(pairs ...string) form {
	return filled(append(pairs, "expires_at", w.Now().UTC().AddDate(0, 0, 30).Format(time.DateOnly))...)
}

func (w *Web) placeTokens(v *visit, in project.Place) error {
	return w.showPlaceTokens(v, in, w.newTokenForm("access_level", "30"), nil)
}

func (w *Web) showPlaceTokens(v *visit, in project.Place, f form, made *project.AccessToken) error {
	s, err := w.setup(v, in, "access_tokens")
	if err != nil {
		return err
	}
	page, err := w.Projects.AccessTokens(v, v.actor, in, user.TokenFilter{State: "active"}, v.paging())
	if err != nil {
		return err
	}
	f.only("name", "expires_at", "scopes", "access_level")
	p := placeTokensPage{setup: s, Form: f, Tokens: page.Items, Made: made, Pager: v.pager(page.More)}
	if p.Days, err = w.tokenDays(v); err != nil {
		return err
	}
	p.Scopes = botScopes()
	return v.showForm(p, f)
}

// botScopes are the scopes that tokens of bots can have.
func botScopes() []scope {
	var list []scope
	texts := scopeTexts()
	for _, name := range user.BotScopes() {
		list = append(list, scope{name, texts[name]})
	}
	return list
}

func (w *Web) tokenDays(v *visit) (tokenSpan, error) {
	settings, err := w.Settings.Current(v)
	if err != nil {
		return tokenSpan{}, err
	}
	now := w.Now().UTC()
	return tokenSpan{now.AddDate(0, 0, 1).Format(time.DateOnly), now.AddDate(0, 0, settings.MaxTokenLifetimeDays).Format(time.DateOnly)}, nil
}

func (w *Web) createPlaceToken(v *visit, in project.Place) error {
	made, err := w.Projects.CreateAccessToken(v, v.actor, in, project.NewAccessToken{
		NewToken: user.NewToken{Name: v.text("name"), Scopes: v.r.PostForm["scopes"], ExpiresAt: v.text("expires_at")},
		Level:    v.sentLevel("access_level"),
	})
	if err != nil {
		f := v.sent()
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showPlaceTokens(v, in, f, nil)
	}
	return w.showPlaceTokens(v, in, w.newTokenForm("access_level", "30"), made)
}

func (w *Web) revokePlaceToken(v *visit, in project.Place) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	return v.redirectWithFlash(w.Projects.RevokeAccessToken(v, v.actor, in, id, nil), "The token was revoked.", settingsOf(in, "access_tokens"))
}
