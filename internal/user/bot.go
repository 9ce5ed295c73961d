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

// A bot is the account behind a project or group access token. The operations
// here are for the feature that owns projects and groups: it checks permissions
// and records audit events.

// BotOf names the group or project that a bot works for: one of the two.
type BotOf struct {
	ProjectID   *int64
	NamespaceID *int64
}

// BotScopes are the scopes that the token of a bot may have: none that reads
// personal data or allows sudo.
func BotScopes() []string {
	return slices.DeleteFunc(Scopes(), func(scope string) bool {
		return slices.Contains([]string{"read_user", "sudo", "admin_mode", "openid", "profile", "email"}, scope)
	})
}

// BotToken is an access token of a bot.
type BotToken struct {
	Token
	Level int64 // that the bot was given when it was made
}

// NewBot is what the account of a bot is made of.
type NewBot struct {
	Of       BotOf
	Username string
	Email    string
	Level    int64
}

// NewBotToken checks what is asked for of a bot's token and makes its secret:
// Invalid when it cannot be. Nothing is stored yet.
func (s *Service) NewBotToken(ctx context.Context, n NewToken) (*Token, error) {
	for _, scope := range n.Scopes {
		if !slices.Contains(BotScopes(), scope) {
			return nil, errs.InvalidField("scopes", "can only contain available scopes")
		}
	}
	return s.newToken(ctx, OfBot, n)
}

// AddBot stores a bot, called like its token, and the token.
func (s *Service) AddBot(ctx context.Context, tx *db.Tx, by actor.Actor, n NewBot, t *Token) (*User, error) {
	u := s.newUser(by, NewUser{Username: n.Username, Name: t.Name, Email: n.Email, SkipConfirmation: true}, setting.Default())
	u.Kind, u.External, u.ProjectsLimit, u.CanCreateGroup = ProjectBot, by.External, 0, false
	if n.Of.NamespaceID != nil {
		u.Kind = GroupBot
	}
	if err := insertUser(ctx, tx, u, ""); err != nil { // no password opens it
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

// BotTokens lists the tokens of the bots of a group or project, also those
// that have ended as long as their bots are kept.
func (s *Service) BotTokens(ctx context.Context, of BotOf, f TokenFilter, p db.Paging) (db.Page[BotToken], error) {
	return listBotTokens(ctx, s.DB, of, f, s.Now(), p)
}

// BotToken returns one token of a bot of the group or project; NotFound when it
// has no such token.
func (s *Service) BotToken(ctx context.Context, of BotOf, id int64) (*BotToken, error) {
	t, err := findBotToken(ctx, s.DB, of, id)
	if err != nil {
		return nil, db.NotFound(err, "")
	}
	return &t, nil
}

// RevokeBotToken ends a token of a bot; changed is false when it had ended
// before.
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

// RotateBotToken ends a token of a bot and gives the one that takes its place;
// record runs in the transaction. A token that had ended before is Invalid,
// and what came out of it ends as well: see RotateToken. Then ended runs in the
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

// IdleBots gives some of the bots none of whose access tokens of the group or
// project works any more and that have not been retired yet.
func (s *Service) IdleBots(ctx context.Context, q db.Q, limit int) ([]int64, error) {
	return idleBots(ctx, q, s.today(), limit)
}

func (s *Service) today() string { return s.Now().UTC().Format(time.DateOnly) }

// RetireBot ends a bot, unless one of its access tokens of the group or project
// still works: then retired is false. Its account is blocked, its other tokens
// and its keys end with it. The account is deleted some weeks later.
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

// botDays is how long the account of a retired bot is kept, so that users find
// in the list of tokens what has ended.
const botDays = 30

// deleteBots removes the accounts of bots that were retired long ago. What
// they made goes to the ghost user.
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

// DeleteBot removes the account of a bot whose group or project goes. One that
// is gone already is no error.
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
