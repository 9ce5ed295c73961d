package compat

import (
	"net/http"
	"strings"
	"testing"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go"
	"golang.org/x/oauth2"
)

const unauthorized = "{message: 401 Unauthorized}"

func TestGoClientTokens(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		root := s.client(t, rootToken)
		u := newUser(t, root, "ada")
		t.Run("life", func(t *testing.T) { goTokenLife(t, s, root, u) })
		t.Run("lists", func(t *testing.T) { goTokenLists(t, s, root) })
		t.Run("scopes", func(t *testing.T) { goScopes(t, s, root, u) })
		t.Run("refusals", func(t *testing.T) { goTokenRefusals(t, root, u) })
		t.Run("impersonation", func(t *testing.T) { goImpersonation(t, s, root, u) })
		t.Run("sudo", func(t *testing.T) { goSudo(t, s, root, u) })
	})
}

// goTokenLife creates a token, rotates it twice and revokes it.
func goTokenLife(t *testing.T, s *server, root *gitlab.Client, u *gitlab.User) {
	nextMonth := gitlab.ISOTime(time.Now().UTC().AddDate(0, 1, 0).Truncate(24 * time.Hour))
	made := ask(root.Users.CreatePersonalAccessToken(u.ID, &gitlab.CreatePersonalAccessTokenOptions{
		Name: new("deploy"), Description: new("for a machine"), Scopes: new([]string{"api", "read_user"}), ExpiresAt: &nextMonth,
	})).done(t, http.StatusCreated)
	recent(t, "created_at", made.CreatedAt)
	same(t, "token", *made, gitlab.PersonalAccessToken{
		ID: made.ID, CreatedAt: made.CreatedAt, Token: made.Token,
		Name: "deploy", Description: "for a machine", Scopes: []string{"api", "read_user"}, UserID: u.ID, Active: true, ExpiresAt: &nextMonth,
	})
	if !strings.HasPrefix(made.Token, "svcpat-") {
		t.Errorf("the token does not start with svcpat-")
	}

	first := s.client(t, made.Token)
	same(t, "user of the token", ask(first.Users.CurrentUser()).ok(t).Username, "ada")
	self := ask(first.PersonalAccessTokens.GetSinglePersonalAccessToken()).ok(t)
	same(t, "id, token", []any{self.ID, self.Token}, []any{made.ID, ""})
	recent(t, "last_used_at", self.LastUsedAt)
	same(t, "name by id", ask(root.PersonalAccessTokens.GetSinglePersonalAccessTokenByID(made.ID)).ok(t).Name, "deploy")

	// The same token is also accepted as a bearer token.
	source := gitlab.OAuthTokenSource{TokenSource: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: made.Token})}
	bearer, err := gitlab.NewAuthSourceClient(source, gitlab.WithBaseURL(s.url))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "user of the bearer", ask(bearer.Users.CurrentUser()).ok(t).Username, "ada")

	rotated := ask(root.PersonalAccessTokens.RotatePersonalAccessTokenByID(made.ID, &gitlab.RotatePersonalAccessTokenOptions{ExpiresAt: &nextMonth})).done(t, http.StatusOK)
	if rotated.ID == made.ID || rotated.Token == made.Token || rotated.Name != "deploy" || rotated.ExpiresAt.String() != nextMonth.String() {
		t.Errorf("rotated: %d %q until %v", rotated.ID, rotated.Name, rotated.ExpiresAt)
	}
	ask(first.Users.CurrentUser()).refused(t, http.StatusUnauthorized, unauthorized)
	ask(bearer.Users.CurrentUser()).refused(t, http.StatusUnauthorized, unauthorized)

	second := s.client(t, rotated.Token)
	again := ask(second.PersonalAccessTokens.RotatePersonalAccessTokenSelf(nil)).done(t, http.StatusOK)
	same(t, "expiry unless given", again.ExpiresAt.String(), time.Now().UTC().AddDate(0, 0, 7).Format(time.DateOnly))
	ask(second.Users.CurrentUser()).refused(t, http.StatusUnauthorized, unauthorized)

	third := s.client(t, again.Token)
	send(root.PersonalAccessTokens.RevokePersonalAccessTokenByID(again.ID)).done(t, http.StatusNoContent)
	ask(third.Users.CurrentUser()).refused(t, http.StatusUnauthorized, unauthorized)
	over := ask(root.PersonalAccessTokens.GetSinglePersonalAccessTokenByID(again.ID)).ok(t)
	same(t, "revoked, active", []bool{over.Revoked, over.Active}, []bool{true, false})
	ask(root.PersonalAccessTokens.RotatePersonalAccessTokenByID(again.ID, nil)).
		refused(t, http.StatusBadRequest, "{message: 400 Bad request - token already revoked}")

	last := s.client(t, newToken(t, root, u.ID, "api").Token)
	send(last.PersonalAccessTokens.RevokePersonalAccessTokenSelf()).done(t, http.StatusNoContent)
	ask(last.Users.CurrentUser()).refused(t, http.StatusUnauthorized, unauthorized)
}

func goTokenLists(t *testing.T, s *server, root *gitlab.Client) {
	u := newUser(t, root, "list")
	var ids []int64
	for range 5 {
		ids = append(ids, newToken(t, root, u.ID, "api").ID)
	}
	own := s.client(t, ask(root.Users.CreatePersonalAccessToken(u.ID, &gitlab.CreatePersonalAccessTokenOptions{
		Name: new("needle"), Scopes: new([]string{"read_api"}),
	})).ok(t).Token)
	used := ask(own.PersonalAccessTokens.GetSinglePersonalAccessToken()).ok(t).ID
	send(root.PersonalAccessTokens.RevokePersonalAccessTokenByID(ids[0])).ok(t)

	yesterday, tomorrow := gitlab.ISOTime(time.Now().UTC().AddDate(0, 0, -1)), gitlab.ISOTime(time.Now().UTC().AddDate(0, 0, 1))
	tests := []struct {
		name    string
		options gitlab.ListPersonalAccessTokensOptions
		want    []int64
	}{
		{"all", gitlab.ListPersonalAccessTokensOptions{}, append(ids, used)},
		{"active", gitlab.ListPersonalAccessTokensOptions{State: new("active")}, append(ids[1:], used)},
		{"revoked", gitlab.ListPersonalAccessTokensOptions{Revoked: new(true)}, ids[:1]},
		{"search", gitlab.ListPersonalAccessTokensOptions{Search: new("needle")}, []int64{used}},
		{"created after yesterday", gitlab.ListPersonalAccessTokensOptions{CreatedAfter: &yesterday}, append(ids, used)},
		{"created before yesterday", gitlab.ListPersonalAccessTokensOptions{CreatedBefore: &yesterday}, nil},
		{"used after yesterday", gitlab.ListPersonalAccessTokensOptions{LastUsedAfter: &yesterday}, []int64{used}},
		{"expires before tomorrow", gitlab.ListPersonalAccessTokensOptions{ExpiresBefore: &tomorrow}, nil},
		{"oldest first", gitlab.ListPersonalAccessTokensOptions{Sort: new("created_asc")}, append(ids, used)},
		{"newest first", gitlab.ListPersonalAccessTokensOptions{Sort: new("created_desc")}, []int64{used, ids[4], ids[3], ids[2], ids[1], ids[0]}},
	}
	for _, tt := range tests {
		o := tt.options
		o.UserID, o.PerPage = &u.ID, 2
		list, err := gitlab.ScanAndCollect(func(p gitlab.PaginationOptionFunc) ([]*gitlab.PersonalAccessToken, *gitlab.Response, error) {
			return root.PersonalAccessTokens.ListPersonalAccessTokens(&o, p)
		})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		var got []int64
		for _, token := range list {
			got = append(got, token.ID)
			if token.Token != "" || token.UserID != u.ID {
				t.Errorf("%s: a token of user %d, with its secret: %t", tt.name, token.UserID, token.Token != "")
			}
		}
		same(t, tt.name, got, tt.want)
	}
	mine := ask(own.PersonalAccessTokens.ListPersonalAccessTokens(nil))
	same(t, "own tokens", []int64{int64(len(mine.ok(t))), mine.res.TotalItems}, []int64{6, 6})
	ask(own.PersonalAccessTokens.ListPersonalAccessTokens(&gitlab.ListPersonalAccessTokensOptions{UserID: new(int64(1))})).
		refused(t, http.StatusForbidden, "{message: 403 Forbidden}")
}

func goScopes(t *testing.T, s *server, root *gitlab.Client, u *gitlab.User) {
	const text = "{error: insufficient_scope}, {error_description: The request requires higher privileges than provided by the access token.}, {scope: "
	status := &gitlab.UserStatusOptions{Message: new("x")}
	reads := s.client(t, newToken(t, root, u.ID, "read_api").Token)
	ask(reads.Users.CurrentUser()).ok(t)
	ask(reads.Users.ListSSHKeys(nil)).ok(t)
	ask(reads.Users.SetUserStatus(status)).refused(t, http.StatusForbidden, text+"api}")

	profile := s.client(t, newToken(t, root, u.ID, "read_user").Token)
	ask(profile.Users.CurrentUser()).ok(t)
	ask(profile.Users.ListUsers(nil)).ok(t)
	ask(profile.PersonalAccessTokens.ListPersonalAccessTokens(nil)).refused(t, http.StatusForbidden, text+"api read_api}")

	pull := s.client(t, newToken(t, root, u.ID, "read_repository").Token)
	ask(pull.Users.CurrentUser()).refused(t, http.StatusForbidden, text+"api read_api read_user}")
	ask(pull.PersonalAccessTokens.GetSinglePersonalAccessToken()).ok(t)

	self := s.client(t, newToken(t, root, u.ID, "api").Token)
	limited := ask(self.Users.CreatePersonalAccessTokenForCurrentUser(&gitlab.CreatePersonalAccessTokenForCurrentUserOptions{
		Name: new("cluster"), Scopes: new([]string{"k8s_proxy"}),
	})).done(t, http.StatusCreated)
	same(t, "expiry of a limited token", limited.ExpiresAt.String(), time.Now().UTC().AddDate(0, 0, 1).Format(time.DateOnly))
	ask(self.Users.CreatePersonalAccessTokenForCurrentUser(&gitlab.CreatePersonalAccessTokenForCurrentUserOptions{
		Name: new("more"), Scopes: new([]string{"api"}),
	})).refused(t, http.StatusBadRequest, "{error: scopes does not have a valid value}")
}

func goTokenRefusals(t *testing.T, root *gitlab.Client, u *gitlab.User) {
	past, far := gitlab.ISOTime(time.Now().UTC().AddDate(0, 0, -1)), gitlab.ISOTime(time.Now().UTC().AddDate(2, 0, 0))
	tests := []struct {
		name    string
		options *gitlab.CreatePersonalAccessTokenOptions
		want    string
	}{
		// Without options, the client sends null.
		{"nothing", nil, "{error: name is missing, scopes is missing}"},
		{"no name and scopes", &gitlab.CreatePersonalAccessTokenOptions{}, "{error: name is missing, scopes is missing}"},
		{"an unknown scope", &gitlab.CreatePersonalAccessTokenOptions{Name: new("x"), Scopes: new([]string{"all"})}, "{error: scopes does not have a valid value}"},
		{"no scope", &gitlab.CreatePersonalAccessTokenOptions{Name: new("x"), Scopes: new([]string{})}, "{error: scopes is empty}"},
		{"in the past", &gitlab.CreatePersonalAccessTokenOptions{Name: new("x"), Scopes: new([]string{"api"}), ExpiresAt: &past}, "{message: {expires_at: [can't be in the past]}}"},
		{"too long", &gitlab.CreatePersonalAccessTokenOptions{Name: new("x"), Scopes: new([]string{"api"}), ExpiresAt: &far}, "{message: {expires_at: [must expire in 365 days]}}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ask(root.Users.CreatePersonalAccessToken(u.ID, tt.options)).refused(t, http.StatusBadRequest, tt.want)
		})
	}
	ask(root.Users.CreatePersonalAccessToken(987654, &gitlab.CreatePersonalAccessTokenOptions{Name: new("x"), Scopes: new([]string{"api"})})).missing(t)
	send(root.PersonalAccessTokens.RevokePersonalAccessTokenByID(987654)).missing(t)
}

func goImpersonation(t *testing.T, s *server, root *gitlab.Client, u *gitlab.User) {
	// This client sends a date as a time.
	nextMonth := time.Now().UTC().AddDate(0, 1, 0).Truncate(24 * time.Hour)
	made := ask(root.Users.CreateImpersonationToken(u.ID, &gitlab.CreateImpersonationTokenOptions{
		Name: new("support"), Scopes: new([]string{"api"}), ExpiresAt: &nextMonth,
	})).done(t, http.StatusCreated)
	same(t, "name, scopes, expiry", []any{made.Name, made.Scopes, made.ExpiresAt.String()}, []any{"support", []string{"api"}, nextMonth.Format(time.DateOnly)})
	as := s.client(t, made.Token)
	same(t, "user of the token", ask(as.Users.CurrentUser()).ok(t).Username, "ada")
	one := ask(root.Users.GetImpersonationToken(u.ID, made.ID)).ok(t)
	recent(t, "last_used_at", one.LastUsedAt)
	same(t, "active, secret", []any{one.Active, one.Token}, []any{true, ""})
	list := ask(root.Users.GetAllImpersonationTokens(u.ID, &gitlab.GetAllImpersonationTokensOptions{State: new("active")})).ok(t)
	same(t, "active tokens", list, []*gitlab.ImpersonationToken{one})
	// It is not one of the user's own tokens.
	for _, token := range ask(as.PersonalAccessTokens.ListPersonalAccessTokens(&gitlab.ListPersonalAccessTokensOptions{State: new("active")})).ok(t) {
		if token.ID == made.ID {
			t.Error("an impersonation token is among the personal ones")
		}
	}
	ask(as.Users.CreateImpersonationToken(u.ID, &gitlab.CreateImpersonationTokenOptions{Name: new("x"), Scopes: new([]string{"api"})})).
		refused(t, http.StatusForbidden, "{message: 403 Forbidden}")

	send(root.Users.RevokeImpersonationToken(u.ID, made.ID)).done(t, http.StatusNoContent)
	ask(as.Users.CurrentUser()).refused(t, http.StatusUnauthorized, unauthorized)
	if list := ask(root.Users.GetAllImpersonationTokens(u.ID, &gitlab.GetAllImpersonationTokensOptions{State: new("inactive")})).ok(t); len(list) != 1 || !list[0].Revoked {
		t.Errorf("inactive impersonation tokens: %+v", list)
	}
}

func goSudo(t *testing.T, s *server, root *gitlab.Client, u *gitlab.User) {
	same(t, "by username", ask(root.Users.CurrentUser(gitlab.WithSudo("ADA"))).ok(t).ID, u.ID)
	same(t, "by id", ask(root.Users.CurrentUser(gitlab.WithSudo(int(u.ID)))).ok(t).Username, "ada")
	ask(root.Settings.GetSettings(gitlab.WithSudo("ada"))).refused(t, http.StatusForbidden, "{message: 403 Forbidden}")
	anonymous := ask(root.Users.CurrentUser(gitlab.WithSudo("nobody")))
	anonymous.missing(t)

	self := s.client(t, newToken(t, root, u.ID, "api", "sudo").Token)
	ask(self.Users.CurrentUser(gitlab.WithSudo("root"))).refused(t, http.StatusForbidden, "{message: 403 Forbidden - Must be admin to use sudo}")
	weak := s.client(t, newToken(t, root, 1, "api").Token)
	ask(weak.Users.CurrentUser(gitlab.WithSudo("ada"))).refused(t, http.StatusForbidden,
		"{error: insufficient_scope}, {error_description: The request requires higher privileges than provided by the access token.}, {scope: sudo}")
}
