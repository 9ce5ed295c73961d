package user

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/secret"
	"svc/internal/setting"
)

// A bot user is the account of a project or group access token. The functions here
// are called by the feature that owns projects and groups, which checks
// permissions and records audit events.

// BotOf identifies the project or group of a bot user. One field is set.
type BotOf struct {
	ProjectID   *int64
	NamespaceID *int64
}

// BotScopes returns the scopes that tokens of bot users may have: none that reads
// personal data or allows sudo.
func BotScopes() []string {
	return slices.DeleteFunc(Scopes(), func(scope string) bool {
		return slices.Contains([]string{"read_user", "sudo", "admin_mode", "openid", "profile", "email"}, scope)
	})
}

// BotToken is an access token of a bot user.
type BotToken struct {
	Token
	Level int64 // level that the bot user was created with
}

// NewBot has the fields of a new bot user.
type NewBot struct {
	Of       BotOf
	Username string
	Email    string
	Level    int64
}

// NewBotToken validates a new token of a bot user and generates its secret.
// Nothing is stored yet. Invalid.
func (s *Service) NewBotToken(ctx context.Context, n NewToken) (*Token, error) {
	for _, scope := range n.Scopes {
		if !slices.Contains(BotScopes(), scope) {
			return nil, errs.InvalidField("scopes", "can only contain available scopes")
		}
	}
	return s.newToken(ctx, OfBot, n)
}

// AddBot inserts a bot user, named like its token, and the token.
func (s *Service) AddBot(ctx context.Context, tx *db.Tx, by actor.Actor, n NewBot, t *Token) (*User, error) {
	u := s.newUser(by, NewUser{Username: n.Username, Name: t.Name, Email: n.Email, SkipConfirmation: true}, setting.Default())
	u.Kind, u.External, u.ProjectsLimit, u.CanCreateGroup = ProjectBot, by.External, 0, false
	if n.Of.NamespaceID != nil {
		u.Kind = GroupBot
	}
	if err := insertUser(ctx, tx, u, ""); err != nil { // no password
		return nil, err
	}
	if _, err := insertEmail(ctx, tx, u.ID, u.Email, u.ConfirmedAt, "", u.CreatedAt); err != nil {
		return nil, taken(err)
	}
	if err := saveUser(ctx, tx, u); err != nil {
		return nil, err
	}
	if err := insertBot(ctx, tx, u.ID, n.Of, n.Level); err != nil {
		return nil, err
	}
	t.UserID = u.ID
	return u, insertToken(ctx, tx, t, secret.Digest(t.Secret), 0)
}

// BotTokens lists the tokens of the bot users of a project or group, including
// inactive ones of bot users that still exist.
func (s *Service) BotTokens(ctx context.Context, of BotOf, f TokenFilter, p db.Paging) (db.Page[BotToken], error) {
	return listBotTokens(ctx, s.DB, of, f, s.Now(), p)
}

// BotToken returns a token of a bot user of a project or group. NotFound.
func (s *Service) BotToken(ctx context.Context, of BotOf, id int64) (*BotToken, error) {
	t, err := findBotToken(ctx, s.DB, of, id)
	if err != nil {
		return nil, db.NotFound(err, "")
	}
	return &t, nil
}

// RevokeBotToken revokes a token of a bot user. changed is false if it was
// inactive already.
func (s *Service) RevokeBotToken(ctx context.Context, tx *db.Tx, t *Token) (changed bool, err error) {
	err = revokeToken(ctx, tx, t.ID, s.Now())
	if errors.Is(err, db.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, s.dropActor(ctx, tx, t.UserID)
}

// RotateBotToken revokes a token of a bot user and returns its replacement; record
// runs in the transaction. If the token was revoked before, it is Invalid, and the
// tokens derived from it are revoked too, see RotateToken; then ended runs in the
// transaction instead.
func (s *Service) RotateBotToken(ctx context.Context, old *Token, expiresAt string, record func(*db.Tx, *Token) error, ended func(*db.Tx) error) (*Token, error) {
	t, err := s.successor(ctx, old, expiresAt)
	if err != nil {
		return nil, err
	}
	reused := false
	err = s.DB.Tx(ctx, func(tx *db.Tx) (err error) {
		if reused, err = s.replaceToken(ctx, tx, old, t); err != nil {
			return err
		}
		if reused {
			return ended(tx)
		}
		return record(tx, t)
	})
	if err != nil {
		return nil, fmt.Errorf("rotate token %d: %w", old.ID, err)
	}
	if reused {
		return nil, errReused()
	}
	return t, nil
}

// IdleBots returns a batch of bot users that have no active access token of their
// project or group and are not retired yet.
func (s *Service) IdleBots(ctx context.Context, q db.Q, limit int) ([]int64, error) {
	return idleBots(ctx, q, s.today(), limit)
}

func (s *Service) today() string { return s.Now().UTC().Format(time.DateOnly) }

// RetireBot blocks a bot user and revokes its other tokens and keys, unless one of
// its access tokens of the project or group is active: then retired is false. The
// account is deleted some weeks later.
func (s *Service) RetireBot(ctx context.Context, tx *db.Tx, userID int64) (retired bool, err error) {
	if retired, err = retireBot(ctx, tx, userID, s.Now(), s.today()); err != nil || !retired {
		return false, err
	}
	if err := s.blockBot(ctx, tx, userID); err != nil {
		return false, fmt.Errorf("retire bot %d: %w", userID, err)
	}
	return true, nil
}

func (s *Service) blockBot(ctx context.Context, tx *db.Tx, userID int64) error {
	now := s.Now()
	if err := revokeNonBotTokens(ctx, tx, userID, now); err != nil {
		return err
	}
	if err := deleteKeys(ctx, tx, userID); err != nil {
		return err
	}
	if err := blockUser(ctx, tx, userID, now); err != nil {
		return err
	}
	return s.dropActor(ctx, tx, userID)
}

// botDays is how long a retired bot user is kept, so that its tokens remain
// visible in lists.
const botDays = 30

// deleteBots deletes bot users that were retired long ago. Their contributions are
// moved to the ghost user.
func (s *Service) deleteBots(ctx context.Context) error {
	old, err := retiredBots(ctx, s.DB, s.Now().AddDate(0, 0, -botDays), 1000)
	if err != nil {
		return fmt.Errorf("delete bots: %w", err)
	}
	for _, id := range old {
		err := s.DB.Tx(ctx, func(tx *db.Tx) error { return s.DeleteBot(ctx, tx, id) })
		if err != nil {
			return fmt.Errorf("delete bot %d: %w", id, err)
		}
	}
	return nil
}

// DeleteBot deletes a bot user whose project or group is deleted. It is not an
// error if it does not exist.
func (s *Service) DeleteBot(ctx context.Context, tx *db.Tx, userID int64) error {
	u, err := findUser(ctx, tx, userID)
	if errs.Is(err, errs.KindNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.beginDelete(ctx, tx, actor.System(), u, false, "user_deleted")
}
