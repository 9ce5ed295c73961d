package plan

import (
	"context"
	"fmt"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/emoji"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/user"
)

// Award is an emoji reaction of a user to an issue, a merge request, a snippet or a
// note.
type Award struct {
	ID        int64
	Name      string // of the emoji: "thumbsup"
	UserID    int64
	On        Target
	CreatedAt time.Time
	UpdatedAt time.Time

	User *user.User
}

// The reactions that are counted as votes.
const (
	Upvote   = "thumbsup"
	Downvote = "thumbsdown"
)

// NoteKind is the kind of a note as the target of a reaction.
const NoteKind Kind = "Note"

// awardTarget returns the target of a reaction: on itself, or a note on it if
// noteID is not 0. NotFound.
func (s *Service) awardTarget(ctx context.Context, q db.Q, on Noteable, noteID int64) (Target, error) {
	if noteID == 0 {
		return on.Target, nil
	}
	n, err := on.find(ctx, q, noteID)
	if err != nil {
		return Target{}, err
	}
	if n.System != "" {
		return Target{}, errs.NotFound("Note")
	}
	return Target{NoteKind, n.ID}, nil
}

// Awards lists the reactions to a target or, if noteID is not 0, to a note on it.
// The caller has checked that the actor can see the target. NotFound.
func (s *Service) Awards(ctx context.Context, on Noteable, noteID int64, p db.Paging) (db.Page[*Award], error) {
	to, err := s.awardTarget(ctx, s.DB, on, noteID)
	if err != nil {
		return db.Page[*Award]{}, err
	}
	page, err := listAwards(ctx, s.DB, to, p)
	if err != nil {
		return page, fmt.Errorf("list reactions: %w", err)
	}
	return page, s.fillAwards(ctx, page.Items...)
}

func (s *Service) fillAwards(ctx context.Context, list ...*Award) error {
	ids := make([]int64, len(list))
	for i, a := range list {
		ids[i] = a.UserID
	}
	users, err := s.Users.FindAll(ctx, ids)
	if err != nil {
		return fmt.Errorf("users of reactions: %w", err)
	}
	for _, a := range list {
		a.User = users[a.UserID]
	}
	return nil
}

// Award returns a reaction. NotFound.
func (s *Service) Award(ctx context.Context, on Noteable, noteID, id int64) (*Award, error) {
	to, err := s.awardTarget(ctx, s.DB, on, noteID)
	if err != nil {
		return nil, err
	}
	a, err := findAward(ctx, s.DB, to, id)
	if err != nil {
		return nil, db.NotFound(err, "Award Emoji")
	}
	return a, s.fillAwards(ctx, a)
}

// maxAwards is the maximum number of reactions of one user to one object.
const maxAwards = 100

// CreateAward adds a reaction. Requires permission to comment on the target.
// NotFound, also for an unknown emoji and for a reaction that exists already;
// Forbidden.
func (s *Service) CreateAward(ctx context.Context, by actor.Actor, on Noteable, noteID int64, name string) (*Award, error) {
	if err := on.mayComment(by); err != nil {
		return nil, err
	}
	e := emoji.Find(name)
	if e == nil {
		return nil, errs.NotFound("Award Emoji Name is not a valid emoji name")
	}
	a := &Award{Name: e.Name, UserID: by.ID, CreatedAt: s.Now(), UpdatedAt: s.Now()}
	err := s.DB.Tx(ctx, func(tx *db.Tx) (err error) {
		// Votes are counted in the row of the target, so that row is locked first.
		if err := on.Target.lock(ctx, tx); err != nil {
			return err
		}
		if a.On, err = s.awardTarget(ctx, tx, on, noteID); err != nil {
			return err
		}
		n, err := countAwards(ctx, tx, a.On, by.ID)
		if err != nil {
			return err
		}
		if n >= maxAwards {
			return errs.Invalid("You cannot add more than %d reactions.", maxAwards)
		}
		if err := insertAward(ctx, tx, a); err != nil {
			return err
		}
		if err := countVote(ctx, tx, a, 1); err != nil {
			return err
		}
		return s.Events.Awarded.Publish(ctx, tx, Awarding{Award: a, ProjectID: on.In.ID, On: on})
	})
	if err != nil {
		return nil, fmt.Errorf("add reaction to %s %d: %w", on.Kind, on.ID, err)
	}
	return a, s.fillAwards(ctx, a)
}

// DeleteAward removes a reaction. Only its author and administrators may do this.
// NotFound; Unauthorized for other users; Forbidden.
func (s *Service) DeleteAward(ctx context.Context, by actor.Actor, on Noteable, noteID, id int64) error {
	if err := on.mayComment(by); err != nil {
		return err
	}
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := on.Target.lock(ctx, tx); err != nil {
			return err
		}
		to, err := s.awardTarget(ctx, tx, on, noteID)
		if err != nil {
			return err
		}
		a, err := findAward(ctx, tx, to, id)
		if err != nil {
			return db.NotFound(err, "Award Emoji")
		}
		if !by.Is(a.UserID) && !by.Admin {
			return errs.Unauthorized("")
		}
		if err := deleteAward(ctx, tx, a.ID); err != nil {
			return err
		}
		if err := countVote(ctx, tx, a, -1); err != nil {
			return err
		}
		return s.Events.Awarded.Publish(ctx, tx, Awarding{Award: a, ProjectID: on.In.ID, On: on, Removed: true})
	})
	if err != nil {
		return fmt.Errorf("remove reaction %d: %w", id, err)
	}
	return nil
}

// ToggleAward adds a reaction of the actor, or removes it if it exists. NotFound;
// Forbidden.
func (s *Service) ToggleAward(ctx context.Context, by actor.Actor, on Noteable, noteID int64, name string) error {
	e := emoji.Find(name)
	if e == nil {
		return errs.NotFound("")
	}
	to, err := s.awardTarget(ctx, s.DB, on, noteID)
	if err != nil {
		return err
	}
	id, err := findAwardNamed(ctx, s.DB, to, by.ID, e.Name)
	if err != nil {
		return fmt.Errorf("find reaction: %w", err)
	}
	if id != 0 {
		return s.DeleteAward(ctx, by, on, noteID, id)
	}
	_, err = s.CreateAward(ctx, by, on, noteID, e.Name)
	return err
}

// reactCommand implements the quick action /react.
func (s *Service) reactCommand(ctx context.Context, by actor.Actor, proj *project.Project, i *Issuable, args, _ string) (string, error) {
	name := strings.Trim(strings.TrimSpace(args), ":")
	e := emoji.Find(name)
	if e == nil {
		if e = emoji.FindText(name); e == nil {
			return "", errs.Invalid("There is no such emoji.")
		}
	}
	if err := s.ToggleAward(ctx, by, i.Noteable(by, proj), 0, e.Name); err != nil {
		return "", err
	}
	return "Toggled the :" + e.Name + ": reaction.", nil
}

// Reaction summarizes the reactions with one emoji to an object.
type Reaction struct {
	Emoji *emoji.Emoji
	Count int
	Own   bool     // the actor has reacted with this emoji
	Names []string // other users who reacted, at most maxNamed
}

// Reactions returns the reactions to a target and to the given notes on it, by
// note ID; reactions to the target itself have the key 0. Thumbs come first.
func (s *Service) Reactions(ctx context.Context, by actor.Actor, on Target, notes []int64) (map[int64][]Reaction, error) {
	found := map[int64][]Reaction{}
	add := func(onNotes bool, rows []awardRow) {
		for _, r := range rows {
			e := emoji.Find(r.name)
			if e == nil {
				continue
			}
			key := int64(0)
			if onNotes {
				key = r.object
			}
			list := found[key]
			last := len(list) - 1
			if last < 0 || list[last].Emoji != e {
				list = append(list, Reaction{Emoji: e})
				last++
			}
			list[last].Count++
			if by.Is(r.userID) {
				list[last].Own = true
			} else if len(list[last].Names) < maxNamed {
				list[last].Names = append(list[last].Names, r.user)
			}
			found[key] = list
		}
	}
	rows, err := findAwardRows(ctx, s.DB, on.Kind, []int64{on.ID})
	if err != nil {
		return nil, fmt.Errorf("reactions: %w", err)
	}
	add(false, rows)
	if len(notes) == 0 {
		return found, nil
	}
	if rows, err = findAwardRows(ctx, s.DB, NoteKind, notes); err != nil {
		return nil, fmt.Errorf("reactions to notes: %w", err)
	}
	add(true, rows)
	return found, nil
}

// maxNamed is the maximum number of users that a page names for a reaction.
const maxNamed = 10
