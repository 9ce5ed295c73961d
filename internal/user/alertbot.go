package user

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/setting"
)

// AlertBot returns the account that opens and closes issues for alerts. It is
// created on first use and cannot sign in.
func (s *Service) AlertBot(ctx context.Context) (*User, error) {
	const tries = 20 // usernames to try, as users may have taken some
	for n := range tries {
		id, err := alertBotID(ctx, s.DB)
		if err == nil {
			return findUser(ctx, s.DB, id)
		}
		if !errors.Is(err, db.ErrNoRows) {
			return nil, fmt.Errorf("find the alert bot: %w", err)
		}
		username := "alert-bot"
		if n > 0 {
			username = fmt.Sprintf("alert-bot%d", n)
		}
		err = s.DB.Tx(ctx, func(tx *db.Tx) error { return s.insertAlertBot(ctx, tx, username) })
		// The username is taken, or another node has created the account.
		if err != nil && !errs.Is(err, errs.KindConflict) {
			return nil, fmt.Errorf("make the alert bot: %w", err)
		}
	}
	return nil, errors.New("make the alert bot: all its names are taken")
}

func (s *Service) insertAlertBot(ctx context.Context, tx *db.Tx, username string) error {
	by := actor.System()
	name := strings.ToUpper(s.ServiceName[:1]) + s.ServiceName[1:] + " Alert Bot"
	u := s.newUser(by, NewUser{Username: username, Name: name, Email: username + "@localhost", SkipConfirmation: true}, setting.Default())
	u.Kind, u.ProjectsLimit, u.CanCreateGroup = AlertBot, 0, false
	if err := insertUser(ctx, tx, u, ""); err != nil { // no password
		return err
	}
	if _, err := insertEmail(ctx, tx, u.ID, u.Email, u.ConfirmedAt, "", u.CreatedAt); err != nil {
		return taken(err)
	}
	if err := saveUser(ctx, tx, u); err != nil {
		return err
	}
	return s.record(ctx, tx, by, u, "user_created", audit.Details{Add: "user", Message: "User " + u.Username + " created"})
}
