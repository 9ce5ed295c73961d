package user

import (
	"context"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/secret"
	"svc/internal/setting"
)

// RootName is the username of the first administrator.
const RootName = "root"

// Root is the generated credentials of the first administrator. A field is empty if
// the operator provided its value.
type Root struct {
	Password string
	Token    string
}

// Bootstrap creates the first administrator and the ghost user in an empty
// instance. An empty password or token is generated and returned, to be shown
// once. It returns nil if there are users.
func (s *Service) Bootstrap(ctx context.Context, password, token string) (*Root, error) {
	empty, err := noUsers(ctx, s.DB)
	if err != nil || !empty {
		return nil, err
	}
	var made Root
	if password == "" {
		made.Password = secret.Token("")
		password = made.Password
	}
	if token == "" {
		made.Token = secret.Token(s.TokenStart() + "pat-")
		token = made.Token
	}
	hash, err := s.Hasher.Hash(ctx, password)
	if err != nil {
		return nil, fmt.Errorf("bootstrap: %w", err)
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error { return s.insertFirst(ctx, tx, hash, token) })
	if errs.Is(err, errs.KindConflict) {
		return nil, nil // another node has done it
	}
	if err != nil {
		return nil, fmt.Errorf("bootstrap: %w", err)
	}
	return &made, nil
}

func (s *Service) insertFirst(ctx context.Context, tx *db.Tx, hash, token string) error {
	by := actor.System()
	for _, n := range []struct {
		kind           Kind
		username, name string
	}{{Human, RootName, "Administrator"}, {Ghost, "ghost", "Ghost User"}} {
		u := s.newUser(by, NewUser{Username: n.username, Name: n.name, Email: n.username + "@localhost", SkipConfirmation: true}, setting.Default())
		u.Kind, u.Admin = n.kind, n.kind == Human
		if n.kind != Human {
			hash = "" // the ghost user cannot sign in
		}
		if err := insertUser(ctx, tx, u, hash); err != nil {
			return err
		}
		if _, err := insertEmail(ctx, tx, u.ID, u.Email, u.ConfirmedAt, "", u.CreatedAt); err != nil {
			return err
		}
		if err := saveUser(ctx, tx, u); err != nil {
			return err
		}
		if err := s.record(ctx, tx, by, u, "user_created", audit.Details{Add: "user", Message: "User " + u.Username + " created"}); err != nil {
			return err
		}
		if n.kind != Human {
			continue
		}
		t := &Token{UserID: u.ID, Kind: Personal, Name: "First token", Scopes: Scopes(), CreatedAt: u.CreatedAt,
			ExpiresAt: firstExpiry(u.CreatedAt), Secret: token}
		if err := s.addToken(ctx, tx, by, t); err != nil {
			return err
		}
	}
	return nil
}

// firstExpiry returns the latest expiration date of root's first token that the
// default settings allow.
func firstExpiry(now time.Time) string {
	return now.UTC().AddDate(0, 0, setting.Default().MaxTokenLifetimeDays).Format(time.DateOnly)
}
