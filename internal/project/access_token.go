package project

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/user"
)

// AccessToken is a project or group access token. It acts as a bot user, which is
// a member of the project or group.
type AccessToken struct {
	user.Token
	Level Level // level of the bot user
}

// NewAccessToken has the fields of a new project or group access token.
type NewAccessToken struct {
	user.NewToken
	Level Level
}

// AccessTokens lists the access tokens of a project or group, including those that
// ended recently. Requires Maintainer of a project or Owner of a group.
func (s *Service) AccessTokens(ctx context.Context, by actor.Actor, place Place, f user.TokenFilter, p db.Paging) (db.Page[AccessToken], error) {
	in, err := s.source(ctx, s.DB, by, place, place.managerLevel())
	if err != nil {
		return db.Page[AccessToken]{}, err
	}
	found, err := s.Users.BotTokens(ctx, in.bots(), f, p)
	if err != nil {
		return db.Page[AccessToken]{}, fmt.Errorf("list access tokens: %w", err)
	}
	page := db.Page[AccessToken]{Last: found.Last, More: found.More, Total: found.Total, Over: found.Over}
	page.Items, err = s.withLevels(ctx, in, found.Items)
	return page, err
}

// bots returns the filter for the bot users of the source.
func (in source) bots() user.BotOf {
	namespaceID, projectID := in.ids()
	return user.BotOf{ProjectID: projectID, NamespaceID: namespaceID}
}

// withLevels adds the current levels of the bot users. For one that is no longer a
// member, the last level is shown.
func (s *Service) withLevels(ctx context.Context, in source, list []user.BotToken) ([]AccessToken, error) {
	tokens := make([]AccessToken, len(list))
	if len(list) == 0 {
		return tokens, nil
	}
	var ids []int64
	for i, t := range list {
		tokens[i] = AccessToken{Token: t.Token, Level: Level(t.Level)}
		ids = append(ids, t.UserID)
	}
	members, err := findMembers(ctx, s.DB, in, ids)
	if err != nil {
		return nil, fmt.Errorf("levels of bots: %w", err)
	}
	for _, m := range members {
		for i := range tokens {
			if tokens[i].UserID == m.UserID {
				tokens[i].Level = m.Level
			}
		}
	}
	return tokens, nil
}

// AccessToken returns an access token. Requires Maintainer of a project or Owner
// of a group. NotFound.
func (s *Service) AccessToken(ctx context.Context, by actor.Actor, place Place, id int64) (*AccessToken, error) {
	in, err := s.source(ctx, s.DB, by, place, place.managerLevel())
	if err != nil {
		return nil, err
	}
	return s.findAccessToken(ctx, in, id)
}

func (s *Service) findAccessToken(ctx context.Context, in source, id int64) (*AccessToken, error) {
	found, err := s.Users.BotToken(ctx, in.bots(), id)
	if err != nil {
		return nil, err
	}
	list, err := s.withLevels(ctx, in, []user.BotToken{*found})
	if err != nil {
		return nil, err
	}
	return &list[0], nil
}

// CreateAccessToken creates an access token and its bot user, which is a member as
// long as the token is valid. Requires Maintainer of a project or Owner of a
// group. Invalid if the level is higher than that of the actor; Forbidden for bot
// users.
func (s *Service) CreateAccessToken(ctx context.Context, by actor.Actor, place Place, n NewAccessToken) (*AccessToken, error) {
	in, err := s.source(ctx, s.DB, by, place, place.managerLevel())
	if err != nil {
		return nil, err
	}
	if err := by.RequireHuman("create access tokens"); err != nil {
		return nil, err
	}
	if !n.Level.Valid() || n.Level == Minimal {
		return nil, errs.InvalidField("access_level", "is not included in the list")
	}
	if in.mayGive(by, n.Level) != nil {
		return nil, errs.Invalid("The role of an access token cannot be higher than that of the user who creates it.")
	}
	t, err := s.Users.NewBotToken(ctx, n.NewToken)
	if err != nil {
		return nil, err
	}
	bot := s.newBot(in, n.Level)
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		u, err := s.Users.AddBot(ctx, tx, by, bot, t)
		if err != nil {
			return err
		}
		m := &Member{UserID: u.ID, Level: n.Level, ExpiresAt: t.ExpiresAt, CreatedAt: s.Now()}
		if by.ID > 0 {
			m.CreatedBy = &by.ID
		}
		if err := insertMember(ctx, tx, in, m); err != nil {
			return err
		}
		return s.recordToken(ctx, tx, by, in, t, "created", audit.Details{Add: "access_token", To: n.Level.String()})
	})
	if err != nil {
		return nil, fmt.Errorf("create access token: %w", err)
	}
	return &AccessToken{Token: *t, Level: n.Level}, nil
}

// newBot returns a new bot user with a unique name.
func (s *Service) newBot(in source, level Level) user.NewBot {
	_, id := in.column()
	kind := "project"
	if in.group != nil {
		kind = "group"
	}
	username := fmt.Sprintf("%s_%d_bot_%s", kind, id, strings.ToLower(rand.Text()))
	host := s.Host
	if host == "" {
		host = "localhost"
	}
	return user.NewBot{Of: in.bots(), Username: username, Email: username + "@noreply." + host, Level: int64(level)}
}

// RevokeAccessToken revokes an access token and removes the membership and all
// other credentials of its bot user, which is deleted some weeks later. Requires
// Maintainer of a project or Owner of a group. NotFound. It is not an error if the
// token has ended already.
func (s *Service) RevokeAccessToken(ctx context.Context, by actor.Actor, place Place, id int64, unmodifiedSince *time.Time) error {
	in, err := s.source(ctx, s.DB, by, place, place.managerLevel())
	if err != nil {
		return err
	}
	t, err := s.findAccessToken(ctx, in, id)
	if err != nil {
		return err
	}
	if err := errs.ChangedSince(t.CreatedAt, unmodifiedSince); err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		changed, err := s.Users.RevokeBotToken(ctx, tx, &t.Token)
		if err != nil || !changed {
			return err
		}
		if err := s.retire(ctx, tx, t.UserID); err != nil {
			return err
		}
		return s.recordToken(ctx, tx, by, in, &t.Token, "revoked", audit.Details{Remove: "access_token"})
	})
	if err != nil {
		return fmt.Errorf("revoke access token %d: %w", id, err)
	}
	return nil
}

// RotateAccessToken revokes an access token and creates a new one for the same bot
// user. Requires Maintainer of a project or Owner of a group, and at least the
// level of the token. Invalid if the token was revoked before; then tokens created
// by rotating it are revoked too. Unauthorized if it has expired, and for bot
// users: see RotateSelfAccessToken.
func (s *Service) RotateAccessToken(ctx context.Context, by actor.Actor, place Place, id int64, expiresAt string) (*AccessToken, error) {
	in, err := s.source(ctx, s.DB, by, place, place.managerLevel())
	if err != nil {
		return nil, err
	}
	if err := by.RequireHuman("rotate access tokens by id"); err != nil {
		return nil, errs.Unauthorized("").Because(err)
	}
	t, err := s.findAccessToken(ctx, in, id)
	if err != nil {
		return nil, err
	}
	if err := in.mayGive(by, t.Level); err != nil {
		return nil, err
	}
	return s.rotate(ctx, by, in, t, expiresAt)
}

// RotateSelfAccessToken rotates the token that the actor uses. Unauthorized if it
// does not belong to this project or group; NotAllowed for a personal access
// token.
func (s *Service) RotateSelfAccessToken(ctx context.Context, by actor.Actor, place Place, expiresAt string) (*AccessToken, error) {
	in, err := s.source(ctx, s.DB, by, place, NoAccess)
	if err != nil {
		return nil, err
	}
	if by.TokenID == 0 {
		return nil, errs.Unauthorized("")
	}
	t, err := s.findAccessToken(ctx, in, by.TokenID)
	if errs.Is(err, errs.KindNotFound) {
		if !by.Bot {
			return nil, errs.NotAllowed("405 Method Not Allowed")
		}
		return nil, errs.Unauthorized("").Because(err)
	}
	if err != nil {
		return nil, err
	}
	return s.rotate(ctx, by, in, t, expiresAt)
}

func (s *Service) rotate(ctx context.Context, by actor.Actor, in source, old *AccessToken, expiresAt string) (*AccessToken, error) {
	if old.RevokedAt == nil && !old.Active(s.Now()) {
		return nil, errs.Unauthorized("Token is expired.") // the bot user is no longer a member
	}
	t, err := s.Users.RotateBotToken(ctx, &old.Token, expiresAt, func(tx *db.Tx, t *user.Token) error {
		// The bot user stays a member as long as the new token is valid.
		if err := saveExpiry(ctx, tx, in, t.UserID, t.ExpiresAt); err != nil {
			return err
		}
		return s.recordToken(ctx, tx, by, in, t, "rotated", audit.Details{Change: "access_token", From: fmt.Sprint(old.ID), To: fmt.Sprint(t.ID)})
	}, func(tx *db.Tx) error { return s.retire(ctx, tx, old.UserID) })
	if err != nil {
		return nil, err
	}
	return &AccessToken{Token: *t, Level: old.Level}, nil
}

func (s *Service) recordToken(ctx context.Context, tx *db.Tx, by actor.Actor, in source, t *user.Token, what string, d audit.Details) error {
	return s.record(ctx, tx, by, in.kind("access_token_"+what), in.entity(), audit.Target{Type: "PersonalAccessToken", ID: t.ID, Details: t.Name}, d)
}

// retire deactivates a bot user and removes its memberships, unless another of its
// access tokens for the project or group is valid.
func (s *Service) retire(ctx context.Context, tx *db.Tx, userID int64) error {
	retired, err := s.Users.RetireBot(ctx, tx, userID)
	if err != nil || !retired {
		return err
	}
	return deleteMemberships(ctx, tx, userID)
}

// retireBots retires the bot users of tokens that expired or were revoked by other
// means than RevokeAccessToken.
func (s *Service) retireBots(ctx context.Context) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		idle, err := s.Users.IdleBots(ctx, tx, 1000)
		if err != nil {
			return err
		}
		for _, id := range idle {
			if err := s.retire(ctx, tx, id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("retire bots: %w", err)
	}
	return nil
}
