package user

import (
	"context"
	"fmt"
	"regexp"
	"time"
	"unicode/utf8"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/patch"
)

// Availability is whether a user is busy.
type Availability string

// The availabilities.
const (
	NotSet Availability = "not_set"
	Busy   Availability = "busy"
)

// Status is the status of a user.
type Status struct {
	Emoji        string
	Message      string
	Availability Availability
	ClearAt      *time.Time // expiration; nil means never
}

// StatusAt returns the status at a time. An expired status is empty.
func (st Status) StatusAt(now time.Time) Status {
	if st.ClearAt != nil && !now.Before(*st.ClearAt) {
		return Status{Availability: NotSet}
	}
	return st
}

func (st Status) empty() bool {
	return st.Emoji == "" && st.Message == "" && st.Availability == NotSet
}

// ClearAfter is the duration of a status; empty means no expiration.
type ClearAfter string

// clearAfter are the possible durations.
var clearAfter = map[ClearAfter]time.Duration{
	"30_minutes": 30 * time.Minute,
	"3_hours":    3 * time.Hour,
	"8_hours":    8 * time.Hour,
	"1_day":      24 * time.Hour,
	"3_days":     3 * 24 * time.Hour,
	"7_days":     7 * 24 * time.Hour,
	"30_days":    30 * 24 * time.Hour,
}

// StatusChange are changes to a status.
type StatusChange struct {
	Emoji        *string
	Message      *string
	Availability *Availability
	ClearAfter   *ClearAfter
}

// defaultEmoji is the emoji of a status without one.
const defaultEmoji = "speech_balloon"

// maxStatus is the maximum length of a message in characters.
const maxStatus = 100

var emojiPattern = regexp.MustCompile(`^[a-z0-9_+-]{1,100}$`)

// StatusOf returns the status of a user. No permissions are required. NotFound.
func (s *Service) StatusOf(ctx context.Context, by actor.Actor, of Ref) (Status, error) {
	u, err := s.Find(ctx, by, of)
	if err != nil {
		return Status{}, err
	}
	return u.StatusAt(s.Now()), nil
}

// SetStatus replaces the status of the actor. Missing fields are cleared.
func (s *Service) SetStatus(ctx context.Context, by actor.Actor, c StatusChange) (Status, error) {
	return s.setStatus(ctx, by, c, func(Status) Status { return Status{Availability: NotSet} })
}

// UpdateStatus changes the status of the actor. Missing fields are kept.
func (s *Service) UpdateStatus(ctx context.Context, by actor.Actor, c StatusChange) (Status, error) {
	return s.setStatus(ctx, by, c, func(now Status) Status { return now })
}

func (s *Service) setStatus(ctx context.Context, by actor.Actor, c StatusChange, start func(Status) Status) (Status, error) {
	if err := by.RequireUser(); err != nil {
		return Status{}, err
	}
	if err := c.check(); err != nil {
		return Status{}, err
	}
	u, err := s.change(ctx, by.ID, func(_ *db.Tx, u *User) error {
		now := s.Now()
		u.Status = c.apply(start(u.StatusAt(now)), now)
		return nil
	})
	if err != nil {
		return Status{}, err
	}
	return u.Status, nil
}

func (c StatusChange) check() error {
	wrong := errs.Fields{}
	if c.Emoji != nil && *c.Emoji != "" && !emojiPattern.MatchString(*c.Emoji) {
		wrong.Set("emoji", "is not a valid emoji name")
	}
	if c.Message != nil && utf8.RuneCountInString(*c.Message) > maxStatus {
		wrong.Set("message", "is too long (maximum is %d characters)", maxStatus)
	}
	if c.Availability != nil && *c.Availability != NotSet && *c.Availability != Busy {
		wrong.Set("availability", "is not included in the list")
	}
	if c.ClearAfter != nil && *c.ClearAfter != "" && clearAfter[*c.ClearAfter] == 0 {
		return errs.Invalid("clear_status_after does not have a valid value")
	}
	return wrong.Err()
}

func (c StatusChange) apply(st Status, now time.Time) Status {
	patch.Set(&st.Emoji, c.Emoji)
	patch.Set(&st.Message, c.Message)
	patch.Set(&st.Availability, c.Availability)
	if c.ClearAfter != nil {
		st.ClearAt = nil
		if d := clearAfter[*c.ClearAfter]; d != 0 {
			at := now.Add(d)
			st.ClearAt = &at
		}
	}
	if st.empty() {
		st.ClearAt = nil
		return st
	}
	if st.Emoji == "" {
		st.Emoji = defaultEmoji
	}
	return st
}

// statusBatch is the number of rows that one statement of clearStatuses updates.
const statusBatch = 500

// clearStatuses clears the statuses that have expired. It only frees space:
// readers check the expiration themselves.
func (s *Service) clearStatuses(ctx context.Context) error {
	for {
		now := s.Now()
		// They are selected outside of the transaction, to keep it short.
		ids, err := endedStatuses(ctx, s.DB, now, statusBatch)
		if err != nil {
			return fmt.Errorf("clear statuses: %w", err)
		}
		if len(ids) == 0 {
			return nil
		}
		if err := clearStatus(ctx, s.DB, ids, now); err != nil {
			return fmt.Errorf("clear statuses: %w", err)
		}
	}
}
