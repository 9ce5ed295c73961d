// Package invite invites email addresses to projects and groups. If an address
// belongs to a user, the user becomes a member immediately. Otherwise an email is
// sent, and its recipient becomes a member when they sign in.
package invite

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"strconv"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/limit"
	post "svc/internal/mail"
	"svc/internal/project"
	"svc/internal/secret"
	"svc/internal/user"
)

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Mail     *post.Sender
	Users    *user.Service
	Projects *project.Service
	Now      func() time.Time
}

// Service manages invitations.
type Service struct {
	Deps
	limits *limit.Limiter
}

// New returns the service.
func New(d Deps) *Service { return &Service{Deps: d, limits: limit.New(limit.Deps{Now: d.Now})} }

// Invitation is a pending invitation.
type Invitation struct {
	ID        int64
	ProjectID *int64
	GroupID   *int64
	Email     string
	Level     project.Level
	ExpiresAt string // of the membership; empty means never
	CreatedBy int64
	Inviter   string // name
	CreatedAt time.Time
}

// Place returns the project or group of the invitation.
func (i *Invitation) Place() project.Place {
	if i.ProjectID != nil {
		return project.Place{Ref: project.RefTo(*i.ProjectID)}
	}
	return project.Place{Ref: project.RefTo(*i.GroupID), Group: true}
}

const (
	maxEmails  = 100  // of one request
	maxPending = 1000 // of a place
	maxAddress = 255
)

// The rates of invitation emails. An invitation can be revoked and created again, and
// anyone can create groups, so pending invitations do not limit the emails to an address.
var (
	inviterAddressRate = limit.Rate{Name: "invitations_of_inviter_to_address", Requests: 5, Period: 24 * time.Hour}
	addressRate        = limit.Rate{Name: "invitations_to_address", Requests: 50, Period: 24 * time.Hour}
	inviterRate        = limit.Rate{Name: "invitations_of_inviter", Requests: 1000, Period: 24 * time.Hour}
)

// manager returns a project or group if the actor may manage its members, and
// otherwise NotFound or Forbidden.
func (s *Service) manager(ctx context.Context, by actor.Actor, at project.Place) (place, project.Setup, error) {
	setup, err := s.Projects.Setup(ctx, by, at)
	if err != nil {
		return place{}, setup, err
	}
	if at.Group {
		g, err := s.Projects.RequireGroup(ctx, by, at.Ref, project.Owner)
		if err != nil {
			return place{}, setup, err
		}
		return place{groupID: g.ID, name: g.FullName, entity: audit.Entity{Type: audit.GroupEntity, ID: g.ID, Path: g.FullPath}}, setup, nil
	}
	p, err := s.Projects.Require(ctx, by, at.Ref, project.Maintainer)
	if err != nil {
		return place{}, setup, err
	}
	return place{projectID: p.ID, name: p.FullName(), entity: audit.Entity{Type: audit.ProjectEntity, ID: p.ID, Path: p.FullPath}}, setup, nil
}

// place is a project or a group.
type place struct {
	projectID, groupID int64 // one of them
	name               string
	entity             audit.Entity
}

// List returns the pending invitations of a project or group whose email address
// contains query. Requires Maintainer of the project or Owner of the group. Errors:
// NotFound, Forbidden.
func (s *Service) List(ctx context.Context, by actor.Actor, at project.Place, query string, p db.Paging) (db.Page[*Invitation], error) {
	in, _, err := s.manager(ctx, by, at)
	if err != nil {
		return db.Page[*Invitation]{}, err
	}
	page, err := list(ctx, s.DB, in, query, p)
	if err != nil {
		return page, fmt.Errorf("list invitations: %w", err)
	}
	return page, nil
}

// Result maps each address or user ID that could not be invited to an error message.
type Result map[string]string

// Invite invites email addresses and users. The result contains those that could not
// be invited; all others are invited. Errors: NotFound, Forbidden, Invalid; limit.Refused
// if nobody could be invited because of too many invitation emails.
func (s *Service) Invite(ctx context.Context, by actor.Actor, at project.Place, emails []string, userIDs []int64, level project.Level, expires string) (Result, error) {
	in, setup, err := s.manager(ctx, by, at)
	if err != nil {
		return nil, err
	}
	if err := by.RequireHuman("invite users"); err != nil {
		return nil, err
	}
	if !setup.ChangeMembers {
		return nil, errs.Forbidden("")
	}
	if err := s.Projects.CheckMember(setup, level, expires); err != nil {
		return nil, err
	}
	if !setup.Grants(level) {
		return nil, errs.Forbidden("")
	}
	if n := len(emails) + len(userIDs); n == 0 || n > maxEmails {
		return nil, errs.Invalid("Between 1 and %d addresses or users can be invited at once", maxEmails)
	}
	failed := Result{}
	for _, id := range userIDs {
		_, err := s.Projects.AddMember(ctx, by, at, project.NewMember{UserID: id, Level: level, ExpiresAt: expires})
		if err := failed.note(fmt.Sprint(id), err); err != nil {
			return nil, err
		}
	}
	for i, email := range emails {
		err := s.inviteOne(ctx, by, at, in, email, level, expires)
		if _, refused := errors.AsType[limit.Refused](err); refused && len(failed) < len(userIDs)+i {
			failed[email] = "Too many invitations were sent. Try again later."
			continue
		}
		if err := failed.note(email, err); err != nil {
			return nil, err
		}
	}
	return failed, nil
}

// note records the error of an address or user if it is a refusal, and returns any
// other error.
func (r Result) note(of string, err error) error {
	if err == nil {
		return nil
	}
	e, ok := errs.As(err)
	if !ok || !errs.IsRefusal(err) {
		return err
	}
	text := e.Text
	if e.Kind == errs.KindNotFound {
		text += " not found"
	}
	for name, list := range e.Fields {
		text = name + " " + strings.Join(list, ", ")
	}
	r[of] = text
	return nil
}

func (s *Service) inviteOne(ctx context.Context, by actor.Actor, at project.Place, in place, email string, level project.Level, expires string) error {
	email, err := cleanAddress(email)
	if err != nil {
		return err
	}
	known, err := s.Users.FindByEmails(ctx, []string{email})
	if err != nil {
		return err
	}
	if u := known[email]; u != nil {
		_, err := s.Projects.AddMember(ctx, by, at, project.NewMember{UserID: u.ID, Level: level, ExpiresAt: expires})
		return err
	}
	token := secret.Token("")
	i := &Invitation{Email: email, Level: level, ExpiresAt: expires, CreatedBy: by.ID, CreatedAt: s.Now()}
	if in.projectID != 0 {
		i.ProjectID = &in.projectID
	} else {
		i.GroupID = &in.groupID
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := in.lock(ctx, tx); err != nil {
			return err
		}
		n, err := count(ctx, tx, in)
		if err != nil {
			return err
		}
		if n >= maxPending {
			return errs.Invalid("There are at most %d pending invitations", maxPending)
		}
		if err := insert(ctx, tx, i, secret.Digest(token)); err != nil {
			if db.IsUnique(err, "invitations_project_id_email") || db.IsUnique(err, "invitations_namespace_id_email") {
				return errs.Invalid("The member's email address has already been taken")
			}
			return err
		}
		if err := s.record(ctx, tx, by, in, i, "member_invited", audit.Details{Add: "invitation", To: level.String()}); err != nil {
			return err
		}
		if !s.Mail.Enabled() {
			return nil
		}
		if err := s.mayMail(by, email); err != nil {
			return err
		}
		return s.Mail.Post(ctx, tx, post.Email{
			To: email, Subject: by.Name + " invited you to join " + in.name,
			Lines:  []string{fmt.Sprintf("%s invited you to join %s with the role %s.", by.Name, in.name, level)},
			Action: "Join now", Path: "/-/invites/" + token,
			After: []string{"Sign in or sign up with this email address to accept the invitation. If you do not want to join, you can ignore this email."},
		})
	})
	return err
}

// mayMail counts an invitation email. It returns limit.Refused if the actor has sent too
// many, to the address or in total, or the address has received too many.
func (s *Service) mayMail(by actor.Actor, address string) error {
	id := strconv.FormatInt(by.ID, 10)
	for _, r := range []struct {
		key  string
		rate limit.Rate
	}{{id + " " + address, inviterAddressRate}, {address, addressRate}, {id, inviterRate}} {
		if d := s.limits.Allow(r.key, r.rate); !d.OK {
			return limit.Refused{Decision: d}
		}
	}
	return nil
}

// cleanAddress returns an email address in lower case, or Invalid.
func cleanAddress(text string) (string, error) {
	text = strings.ToLower(strings.TrimSpace(text))
	a, err := mail.ParseAddress(text)
	if err != nil || a.Address != text || len(text) > maxAddress {
		return "", errs.Invalid("Invite email is invalid")
	}
	return text, nil
}

// Update changes a pending invitation; nil keeps the current value. Errors:
// NotFound, Forbidden, Invalid.
func (s *Service) Update(ctx context.Context, by actor.Actor, at project.Place, email string, level *project.Level, expires *string) (*Invitation, error) {
	in, setup, err := s.manager(ctx, by, at)
	if err != nil {
		return nil, err
	}
	if !setup.ChangeMembers {
		return nil, errs.Forbidden("")
	}
	var i *Invitation
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if i, err = find(ctx, tx, in, strings.ToLower(email)); err != nil {
			return db.NotFound(err, "")
		}
		if !setup.Grants(i.Level) {
			return errs.Forbidden("")
		}
		if level != nil {
			if err := s.Projects.CheckMember(setup, *level, ""); err != nil {
				return err
			}
			if !setup.Grants(*level) {
				return errs.Forbidden("")
			}
			i.Level = *level
		}
		if expires != nil {
			if err := s.Projects.CheckMember(setup, project.Guest, *expires); err != nil {
				return err
			}
			i.ExpiresAt = *expires
		}
		if err := update(ctx, tx, i); err != nil {
			return err
		}
		return s.record(ctx, tx, by, in, i, "invitation_updated", audit.Details{Change: "invitation", To: i.Level.String()})
	})
	if err != nil {
		return nil, fmt.Errorf("update invitation: %w", err)
	}
	return i, nil
}

// Revoke deletes a pending invitation. Errors: NotFound, Forbidden.
func (s *Service) Revoke(ctx context.Context, by actor.Actor, at project.Place, email string) error {
	in, setup, err := s.manager(ctx, by, at)
	if err != nil {
		return err
	}
	if !setup.ChangeMembers {
		return errs.Forbidden("")
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		i, err := find(ctx, tx, in, strings.ToLower(email))
		if err != nil {
			return db.NotFound(err, "")
		}
		if !setup.Grants(i.Level) {
			return errs.Forbidden("")
		}
		if err := remove(ctx, tx, i.ID); err != nil {
			return db.NotFound(err, "")
		}
		return s.record(ctx, tx, by, in, i, "invitation_revoked", audit.Details{Remove: "invitation"})
	})
	if err != nil {
		return fmt.Errorf("revoke invitation: %w", err)
	}
	return nil
}

// ByToken returns the invitation with the token of an invitation email, or NotFound.
func (s *Service) ByToken(ctx context.Context, token string) (*Invitation, error) {
	i, err := findByDigest(ctx, s.DB, secret.Digest(token))
	return i, db.NotFound(err, "Invitation")
}

// maxAccepted is the maximum number of invitations that one sign-in accepts, because
// many places can invite one address. The others are accepted at the next sign-in.
const maxAccepted = 100

// AcceptAll accepts the pending invitations of a user's confirmed email addresses.
// It is called when the user signs in. Invitations that the inviter may no longer
// grant are deleted.
func (s *Service) AcceptAll(ctx context.Context, userID int64, addresses []string) error {
	pending, err := findByEmails(ctx, s.DB, addresses[:min(500, len(addresses))], maxAccepted)
	if err != nil {
		return fmt.Errorf("find invitations: %w", err)
	}
	for _, i := range pending {
		if err := s.accept(ctx, i, userID); err != nil {
			return fmt.Errorf("accept invitation %d: %w", i.ID, err)
		}
	}
	return nil
}

// accept makes a user a member and deletes the invitation. If the user is a member
// already, or the inviter may no longer grant the role, it only deletes the invitation.
func (s *Service) accept(ctx context.Context, i *Invitation, userID int64) error {
	by, err := s.Users.As(ctx, i.CreatedBy)
	if err == nil {
		_, err = s.Projects.AddMember(ctx, by, i.Place(), project.NewMember{UserID: userID, Level: i.Level, ExpiresAt: i.ExpiresAt})
	}
	if errs.Is(err, errs.KindConflict) {
		// The user may have requested access at the same moment.
		if _, err := s.Projects.Member(ctx, actor.System(), i.Place(), userID, false); err != nil {
			if errs.Is(err, errs.KindNotFound) {
				return nil // the next sign-in tries again
			}
			return err
		}
	}
	if err != nil && !errs.IsRefusal(err) {
		return err
	}
	if err := remove(ctx, s.DB, i.ID); err != nil && !errors.Is(err, db.ErrNoRows) {
		return err
	}
	return nil
}

func (s *Service) record(ctx context.Context, tx *db.Tx, by actor.Actor, in place, i *Invitation, kind string, d audit.Details) error {
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: kind, Entity: in.entity, Target: audit.Target{Type: "Member", ID: i.ID, Details: i.Email}, Details: d,
	})
}
