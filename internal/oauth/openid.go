package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/secret"
	"svc/internal/user"
)

// maxGroups is the maximum number of groups in the claims about a user.
const maxGroups = 10_000

// Claims are the OpenID Connect claims about a user, by name.
type Claims map[string]any

// ClaimNames are the names of all claims of an id_token and of UserInfo.
func (s *Service) ClaimNames() []string {
	list := []string{
		"iss", "sub", "aud", "exp", "iat", "auth_time", "nonce", "at_hash", "name", "nickname", "preferred_username", "email", "email_verified",
		"website", "profile", "picture", "groups", "groups_direct",
	}
	for _, role := range []string{"owner", "maintainer", "developer"} {
		list = append(list, s.roleClaims(role)...)
	}
	return list
}

// UserInfo returns the claims about the user who authorized the application.
// Forbidden without the scope openid.
func (s *Service) UserInfo(ctx context.Context, by actor.Actor) (Claims, error) {
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	if by.Scopes == nil || !by.Has("openid") {
		return nil, errs.Forbidden("The token needs the scope openid.")
	}
	u, err := s.account(ctx, by.ID)
	if err != nil {
		return nil, err
	}
	groups, direct, err := s.groups(ctx, u.ID)
	if err != nil {
		return nil, fmt.Errorf("groups of user: %w", err)
	}
	c := s.person(u, by.Scopes)
	c["groups"] = paths(groups, func(*project.Namespace) bool { return true })
	for name, level := range map[string]project.Level{"owner": project.Owner, "maintainer": project.Maintainer, "developer": project.Developer} {
		if list := paths(groups, func(n *project.Namespace) bool { return direct[n.ID] == level }); len(list) > 0 {
			for _, claim := range s.roleClaims(name) {
				c[claim] = list
			}
		}
	}
	return c, nil
}

// roleClaims returns the names of the claim for the groups in which a user has a
// role. They are URLs, so that they do not conflict with other claims: one with the
// name of the service, and the one that public clients read.
func (s *Service) roleClaims(role string) []string {
	list := []string{"https://" + s.ServiceName + ".org/claims/groups/" + role}
	if s.ServiceName != "gitlab" {
		list = append(list, "https://gitlab.org/claims/groups/"+role)
	}
	return list
}

// groups returns the groups that a user is a direct or inherited member of, and the
// level of the user in the groups with a direct membership.
func (s *Service) groups(ctx context.Context, userID int64) ([]*project.Namespace, map[int64]project.Level, error) {
	in := project.GroupsFilter{MinLevel: project.Minimal}
	all, err := s.Projects.Groups(ctx, actor.Actor{ID: userID}, in, project.Sort{By: "id"}, db.Paging{Limit: maxGroups})
	if err != nil {
		return nil, nil, err
	}
	own, err := s.Projects.Memberships(ctx, actor.System(), userID, "Namespace", db.Paging{Limit: maxGroups})
	if err != nil {
		return nil, nil, err
	}
	direct := make(map[int64]project.Level, len(own.Items))
	for _, m := range own.Items {
		direct[m.Source] = m.Level
	}
	return all.Items, direct, nil
}

func paths(groups []*project.Namespace, choose func(*project.Namespace) bool) []string {
	list := []string{}
	for _, n := range groups {
		if choose(n) {
			list = append(list, n.FullPath)
		}
	}
	slices.Sort(list)
	return list
}

// person returns the claims about a user. The email address is included with the
// scope email; without it, only a public one.
func (s *Service) person(u *user.User, scopes []string) Claims {
	c := Claims{
		"sub": strconv.FormatInt(u.ID, 10), "name": u.Name, "nickname": u.Username, "preferred_username": u.Username,
		"profile": s.URL + "/" + u.Username,
	}
	switch {
	case slices.Contains(scopes, "email"):
		c["email"], c["email_verified"] = u.Email, u.ConfirmedAt != nil
	case u.PublicEmail != "":
		c["email"], c["email_verified"] = u.PublicEmail, true // public addresses are confirmed
	}
	if u.WebsiteURL != "" {
		c["website"] = u.WebsiteURL
	}
	if u.Avatar != "" {
		c["picture"] = fmt.Sprintf("%s/uploads/-/system/user/avatar/%d/%s", s.URL, u.ID, url.PathEscape(u.Avatar))
	}
	return c
}

// idToken returns a signed id_token: OpenID Connect Core, section 2. It is empty
// for the password grant without an application.
func (s *Service) idToken(ctx context.Context, app *Application, u *user.User, m *minted, nonce string) (string, error) {
	if app == nil {
		return "", nil
	}
	groups, direct, err := s.groups(ctx, u.ID)
	if err != nil {
		return "", err
	}
	c := s.person(u, m.Scopes)
	c["groups_direct"] = paths(groups, func(n *project.Namespace) bool { return direct[n.ID] > project.NoAccess })
	c["iss"], c["aud"] = s.URL, app.UID
	c["iat"], c["exp"] = m.CreatedAt.Unix(), m.CreatedAt.Add(idTokenLife).Unix()
	c["auth_time"] = m.grant.authenticatedAt.Unix()
	c["at_hash"] = halfHash(m.AccessToken)
	if nonce != "" {
		c["nonce"] = nonce
	}
	return s.Signing.Sign(ctx, c)
}

// halfHash returns the left half of a SHA-256, which binds an id_token to its
// access token.
func halfHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:sha256.Size/2])
}

// Info is the information about a token.
type Info struct {
	UserID      int64
	Scopes      []string
	ExpiresAt   time.Time
	Application string // the client_id; empty without an application
	CreatedAt   time.Time
}

// Info returns information about a valid access token. Unauthorized if it is
// invalid or of another kind.
func (s *Service) Info(ctx context.Context, text, ip string) (*Info, error) {
	by, err := s.Users.Authenticate(ctx, text, ip)
	if errs.Is(err, errs.KindForbidden) || err == nil && by.OAuthTokenID == 0 {
		return nil, errs.Unauthorized("")
	}
	if err != nil {
		return nil, err
	}
	t, err := findTokenByDigest(ctx, s.DB, secret.Digest(text))
	if err != nil {
		return nil, fmt.Errorf("find token: %w", err)
	}
	info := &Info{UserID: by.ID, Scopes: t.scopes, ExpiresAt: t.expiresAt, CreatedAt: t.createdAt}
	if t.grant.applicationID != nil {
		app, err := findApplication(ctx, s.DB, *t.grant.applicationID)
		if err != nil {
			return nil, err
		}
		info.Application = app.UID
	}
	return info, nil
}
