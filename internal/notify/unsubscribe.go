package notify

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
)

// Unsubscription is the target that the unsubscribe link in an email refers to.
type Unsubscription struct {
	TargetKind string
	Name       string // "Title (#1)"; empty if the caller has no access
	Project    string

	userID, targetID int64
}

// unsubscribePath returns the path of the page on which the recipient of an email
// can unsubscribe from its target. The page does not require signing in.
func (s *Service) unsubscribePath(userID int64, kind string, targetID int64) string {
	text := fmt.Sprintf("%d.%s.%d", userID, kind, targetID)
	return "/-/sent_notifications/" + text + "." + s.sign(text) + "/unsubscribe"
}

func (s *Service) sign(text string) string {
	h := hmac.New(sha256.New, s.Keys.Derive("notification links"))
	h.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:20])
}

// Unsubscription returns the target that the token of a link refers to, or NotFound
// if svc did not issue the token. The name of the target is returned only to callers
// with access, because emails can be forwarded and the link does not expire.
func (s *Service) Unsubscription(ctx context.Context, by actor.Actor, token string) (*Unsubscription, error) {
	l, err := s.readToken(token)
	if err != nil {
		return nil, err
	}
	view, err := s.sources[l.TargetKind].View(ctx, by, []*Event{{TargetKind: l.TargetKind, TargetID: l.targetID}})
	if hidden(err) {
		return l, nil
	}
	if err != nil {
		return nil, fmt.Errorf("target of an email: %w", err)
	}
	l.Name, l.Project = view.Subject, view.Project.FullName()
	return l, nil
}

// Unsubscribe unsubscribes the recipient of an email from the target that the token
// of a link refers to. No other permission than the token is required. It does
// nothing if the target or the recipient was deleted. It returns NotFound if svc did
// not issue the token.
func (s *Service) Unsubscribe(ctx context.Context, token string) error {
	l, err := s.readToken(token)
	if err != nil {
		return err
	}
	_, err = s.Users.As(ctx, l.userID)
	if err == nil || errs.Is(err, errs.KindForbidden) {
		_, err = s.sources[l.TargetKind].View(ctx, actor.System(), []*Event{{TargetKind: l.TargetKind, TargetID: l.targetID}})
	}
	if errs.Is(err, errs.KindNotFound) {
		return nil
	}
	if err == nil {
		err = s.sources[l.TargetKind].Subscribe(ctx, l.userID, l.targetID, false)
	}
	if err != nil && !db.IsForeignKey(err) { // deleted concurrently
		return fmt.Errorf("unsubscribe from %s %d: %w", l.TargetKind, l.targetID, err)
	}
	return nil
}

func (s *Service) readToken(token string) (*Unsubscription, error) {
	at := strings.LastIndexByte(token, '.')
	if at < 0 || !hmac.Equal([]byte(s.sign(token[:at])), []byte(token[at+1:])) {
		return nil, errs.NotFound("")
	}
	parts := strings.Split(token[:at], ".")
	if len(parts) != 3 || s.sources[parts[1]] == nil {
		return nil, errs.NotFound("")
	}
	l := &Unsubscription{TargetKind: parts[1]}
	var err error
	if l.userID, err = strconv.ParseInt(parts[0], 10, 64); err != nil {
		return nil, errs.NotFound("")
	}
	if l.targetID, err = strconv.ParseInt(parts[2], 10, 64); err != nil {
		return nil, errs.NotFound("")
	}
	return l, nil
}
