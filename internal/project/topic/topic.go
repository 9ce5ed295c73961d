// Package topic implements the topics of projects, which administrators can
// describe.
package topic

import (
	"context"
	"fmt"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/blob"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/patch"
	"svc/internal/picture"
)

// Deps are the dependencies of the service.
type Deps struct {
	DB    *db.DB
	Blobs blob.Store
	Now   func() time.Time
}

// Service implements the operations on topics.
type Service struct{ Deps }

// New returns the service.
func New(d Deps) *Service { return &Service{d} }

// Topic is a topic of projects. It is created when a project uses it for the first
// time; administrators can add details.
type Topic struct {
	ID          int64
	Name        string // name in projects, ignoring case
	Title       string
	Description string
	Avatar      string
	Projects    int64 // number of projects
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// Filter selects topics.
type Filter struct {
	Search string // in the name
	Unused bool   // only topics without projects
}

// List lists topics by number of projects, largest first. No permissions are
// required.
func (s *Service) List(ctx context.Context, f Filter, p db.Paging) (db.Page[*Topic], error) {
	page, err := listTopics(ctx, s.DB, f, p)
	if err != nil {
		return page, fmt.Errorf("list topics: %w", err)
	}
	return page, nil
}

// Get returns a topic. No permissions are required. NotFound.
func (s *Service) Get(ctx context.Context, id int64) (*Topic, error) {
	return findTopic(ctx, s.DB, id)
}

// Fields are changes to a topic. A nil field keeps the current value.
type Fields struct {
	Name         *string
	Title        *string
	Description  *string
	Avatar       *picture.File
	RemoveAvatar bool // only if Avatar is nil
}

// Create creates a topic. Requires an administrator. Invalid, also if the
// name is taken.
func (s *Service) Create(ctx context.Context, by actor.Actor, f Fields) (*Topic, error) {
	t := &Topic{CreatedAt: s.Now(), UpdatedAt: s.Now()}
	if err := s.check(by, t, f); err != nil {
		return nil, err
	}
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := insertTopic(ctx, tx, t); err != nil {
			return err
		}
		return s.record(ctx, tx, by, t, "topic_created", audit.Details{Add: "topic"})
	})
	if err != nil {
		return nil, fmt.Errorf("create topic: %w", err)
	}
	return s.setAvatar(ctx, t.ID, f)
}

// Update changes a topic, including its name in all projects. Requires an
// administrator. NotFound; Invalid, also if the name is taken.
func (s *Service) Update(ctx context.Context, by actor.Actor, id int64, f Fields) (*Topic, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		t, err := lockTopic(ctx, tx, id)
		if err != nil {
			return err
		}
		was := *t
		if err := s.check(by, t, f); err != nil {
			return err
		}
		t.UpdatedAt = s.Now()
		if err := saveTopic(ctx, tx, t); err != nil {
			return err
		}
		if t.Name != was.Name {
			if err := renameTopic(ctx, tx, was.Name, t.Name); err != nil {
				return err
			}
		}
		return s.record(ctx, tx, by, t, "topic_updated", audit.Details{Change: "topic", From: was.Name, To: t.Name})
	})
	if err != nil {
		return nil, fmt.Errorf("update topic %d: %w", id, err)
	}
	return s.setAvatar(ctx, id, f)
}

// check validates and sets the fields of a topic.
func (s *Service) check(by actor.Actor, t *Topic, f Fields) error {
	if err := by.RequireAdmin(); err != nil {
		return err
	}
	patch.Set(&t.Name, f.Name)
	patch.Set(&t.Title, f.Title)
	patch.Set(&t.Description, f.Description)
	t.Name, t.Title = strings.TrimSpace(t.Name), strings.TrimSpace(t.Title)
	wrong := errs.Fields{}
	for name, c := range map[string]struct {
		text string
		most int
	}{"name": {t.Name, 255}, "title": {t.Title, 255}, "description": {t.Description, 1024}} {
		switch {
		case c.text == "" && name != "description":
			wrong.Set(name, "can't be blank")
		case len([]rune(c.text)) > c.most:
			wrong.Set(name, "is too long (maximum is %d characters)", c.most)
		}
	}
	if strings.ContainsAny(t.Name, "\r\n\v\f") {
		wrong.Set("name", "has characters that are not allowed")
	}
	if err := wrong.Err(); err != nil {
		return err
	}
	return f.Avatar.Check()
}

// Delete deletes a topic and removes it from its projects. Requires an
// administrator. NotFound; Precondition if it was modified since.
func (s *Service) Delete(ctx context.Context, by actor.Actor, id int64, unmodifiedSince *time.Time) error {
	if err := by.RequireAdmin(); err != nil {
		return err
	}
	var t *Topic
	err := s.DB.Tx(ctx, func(tx *db.Tx) (err error) {
		if t, err = lockTopic(ctx, tx, id); err != nil {
			return err
		}
		if err := errs.ChangedSince(t.UpdatedAt, unmodifiedSince); err != nil {
			return err
		}
		if err := deleteTopic(ctx, tx, t); err != nil {
			return err
		}
		return s.record(ctx, tx, by, t, "topic_deleted", audit.Details{Remove: "topic"})
	})
	if err != nil {
		return fmt.Errorf("delete topic %d: %w", id, err)
	}
	s.avatars().Drop(ctx, id, t.Avatar)
	return nil
}

// Merge moves the projects of one topic to another and deletes the first.
// Requires an administrator. NotFound; Invalid if they are the same.
func (s *Service) Merge(ctx context.Context, by actor.Actor, from, to int64) (*Topic, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	if from == to {
		return nil, errs.Refused("The source topic and the target topic are identical.")
	}
	var source *Topic
	err := s.DB.Tx(ctx, func(tx *db.Tx) (err error) {
		// Locked in a fixed order, to avoid deadlocks.
		both := map[int64]*Topic{}
		for _, id := range []int64{min(from, to), max(from, to)} {
			if both[id], err = lockTopic(ctx, tx, id); err != nil {
				return err
			}
		}
		source = both[from]
		target := both[to]
		if err := moveTopic(ctx, tx, source, target); err != nil {
			return err
		}
		return s.record(ctx, tx, by, target, "topic_merged", audit.Details{Change: "topic", From: source.Name, To: target.Name})
	})
	if err != nil {
		return nil, fmt.Errorf("merge topic %d into %d: %w", from, to, err)
	}
	s.avatars().Drop(ctx, from, source.Avatar)
	return findTopic(ctx, s.DB, to)
}

// setAvatar sets the avatar of a topic to a checked file, or removes it, and
// returns the updated topic.
func (s *Service) setAvatar(ctx context.Context, id int64, f Fields) (*Topic, error) {
	err := s.avatars().Replace(ctx, id, f.Avatar, f.RemoveAvatar, func(name string) (was string, err error) {
		err = s.DB.Tx(ctx, func(tx *db.Tx) error {
			t, err := lockTopic(ctx, tx, id)
			if err != nil {
				return err
			}
			was = t.Avatar
			return saveTopicAvatar(ctx, tx, id, name)
		})
		return was, err
	})
	if err != nil {
		return nil, fmt.Errorf("avatar of topic %d: %w", id, err)
	}
	return findTopic(ctx, s.DB, id)
}

// OpenAvatar opens the avatar of a topic by its random name. The caller must
// close it. NotFound unless the name is that of the current avatar.
func (s *Service) OpenAvatar(ctx context.Context, id int64, name string) (*blob.Object, error) {
	t, err := findTopic(ctx, s.DB, id)
	if err != nil {
		return nil, err
	}
	if name == "" || t.Avatar != name {
		return nil, errs.NotFound("Avatar")
	}
	return s.avatars().Open(ctx, id, name)
}

func (s *Service) avatars() picture.Store { return picture.Store{Blobs: s.Blobs, Owner: "topic"} }

func (s *Service) record(ctx context.Context, tx *db.Tx, by actor.Actor, t *Topic, kind string, d audit.Details) error {
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: kind, Entity: audit.Instance(), Target: audit.Target{Type: "Projects::Topic", ID: t.ID, Details: t.Name}, Details: d,
	})
}
