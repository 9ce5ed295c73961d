// Package notify sends notification emails: it stores the notification settings,
// finds the recipients of an event, and renders and sends the emails.
//
// A feature calls Notify in the transaction that changes a target (an issue, a merge
// request, a pipeline …) and registers a Source, which returns the users related to
// an event and renders it for a recipient. Background jobs find the recipients and
// send the emails. Permissions are checked when the email is rendered, not when it
// is queued.
package notify

import (
	"context"
	"fmt"
	"html/template"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/event"
	"svc/internal/mail"
	"svc/internal/markup"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/secret"
	"svc/internal/user"
)

// Event is a change to a target of which users are notified.
type Event struct {
	ID         int64
	Type       EventType
	TargetKind string // "Issue"
	TargetID   int64
	ProjectID  int64
	AuthorID   int64  // 0 means no author
	Once       string // deduplication key: only the first event with a key is recorded; empty for none
	CreatedAt  time.Time
	Details
}

// Details has the data that a Source needs in addition to the target. It is stored
// as JSON.
type Details struct {
	NoteID    int64    `json:"note_id,omitempty"`
	MoreNotes []int64  `json:"more_notes,omitempty"` // the other notes of a review
	Before    []int64  `json:"before,omitempty"`     // assignees or reviewers before the change
	After     []int64  `json:"after,omitempty"`      // assignees or reviewers after the change
	Mentioned []string `json:"mentioned,omitempty"`  // names whose mentions a change adds to a text
	From      string   `json:"from,omitempty"`       // the old value
	To        string   `json:"to,omitempty"`
	Count     int      `json:"count,omitempty"` // of items in one event
}

// Recipients are the users related to an event. A user may be in several lists.
type Recipients struct {
	Participants []int64 // authors, assignees, commenters
	Subscribers  []int64 // subscribed to the target or to one of its labels
	Unsubscribed []int64 // unsubscribed from the target
	Assignees    []int64
	Reviewers    []int64
	Affected     []int64 // added or removed by the event itself, for example as assignees
	BySettings   []int64 // notified if their settings select the event, for example the end of their pipeline
	Text         string  // searched for mentions
	Mentions     []string
	// AllMembers adds all members of the project.
	AllMembers bool
	// SkipWatchers leaves out users who watch the project.
	SkipWatchers bool
}

// View is a target and its events as one recipient sees them.
type View struct {
	Project  *project.Project
	Subject  string // "Title (#1)"
	Noun     string // the target's kind, for the button: "issue"
	Path     string
	First    bool // the email includes the event that created the target
	Sections []mail.Section
	Events   []*Event    // events of the sections; the recipient may not see other events
	Headers  [][2]string // names without the prefix of the service
}

// Add adds a section for each event. section returns nil for an event that the
// recipient may not see. created is the type of the event that creates a target of
// this kind.
func (v *View) Add(events []*Event, created EventType, section func(e *Event) (*mail.Section, error)) error {
	for _, e := range events {
		part, err := section(e)
		if err != nil {
			return err
		}
		if part == nil {
			continue
		}
		v.First = v.First || e.Type == created
		v.Sections, v.Events = append(v.Sections, *part), append(v.Events, e)
	}
	if len(v.Events) > 0 && v.Events[0].NoteID != 0 { // link to the first note
		v.Path += "#note_" + strconv.FormatInt(v.Events[0].NoteID, 10)
	}
	return nil
}

// Source provides the targets of one kind. It is implemented by the feature that
// owns them.
type Source interface {
	// Recipients returns the users related to an event.
	Recipients(ctx context.Context, e *Event) (Recipients, error)
	// View renders events of one target for a user, without events that the user
	// may not see. It returns NotFound if the user has no access to the target.
	View(ctx context.Context, by actor.Actor, events []*Event) (*View, error)
	// Subscribe makes a user a participant of a target unless they have
	// unsubscribed, or, if want is false, unsubscribes them. The caller must check
	// access.
	Subscribe(ctx context.Context, userID, targetID int64, want bool) error
	// CanUnsubscribe reports whether users can unsubscribe from targets of this
	// kind. Otherwise emails link only to the settings.
	CanUnsubscribe() bool
}

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Queue    *queue.Queue
	Keys     *secret.Keyring
	Mail     *mail.Sender
	Users    *user.Service
	Projects *project.Service
	Log      *slog.Logger
	Now      func() time.Time
	// Delay is how long an email waits for more events about its target.
	Delay time.Duration
	// Name is the service name, which is part of the header names.
	Name string
}

// DefaultDelay combines a burst of changes, such as labelling, assigning and
// commenting, into one email.
const DefaultDelay = 30 * time.Second

// Service sends the notification emails of the instance.
type Service struct {
	Deps
	Events Events

	sources map[string]Source
}

// Events are the events that the service publishes.
type Events struct {
	// Recorded is published for each event that Notify records, also without a mail
	// server.
	Recorded event.Event[Event]
}

// New returns the service and registers its background jobs.
func New(d Deps) *Service {
	s := &Service{Deps: d, sources: map[string]Source{}}
	queue.Handle(d.Queue, s.FindRecipients)
	queue.Handle(d.Queue, s.Deliver, queue.Timeout(time.Minute))
	d.Queue.Every("notification_retention", 6*time.Hour, s.purge)
	s.Register(projectKind, projects{s})
	return s
}

// Register sets the source for targets of a kind. It is called at start-up.
func (s *Service) Register(kind string, src Source) { s.sources[kind] = src }

// EmailHTML adapts sanitized HTML to emails.
func (s *Service) EmailHTML(safe string) template.HTML {
	return template.HTML(markup.EmailHTML(safe, s.Mail.Site))
}

// Enabled reports whether emails are sent at all.
func (s *Service) Enabled() bool { return s.Mail.Enabled() }

// Notify records an event and notifies its recipients after tx is committed. The
// caller must check permissions. Without a mail server, no email is sent.
func (s *Service) Notify(ctx context.Context, tx *db.Tx, e Event) error {
	if s.sources[e.TargetKind] == nil {
		return nil
	}
	e.CreatedAt = s.Now()
	if err := s.Events.Recorded.Publish(ctx, tx, e); err != nil || !s.Enabled() {
		return err
	}
	id, err := insertEvent(ctx, tx, &e)
	if err != nil {
		return fmt.Errorf("notify of %s %d: %w", e.TargetKind, e.TargetID, err)
	}
	if id == 0 {
		return nil // a duplicate
	}
	return s.Queue.Add(ctx, tx, RecipientWork{EventID: id})
}

// HasEvent reports whether there was an event of this type for a target.
func (s *Service) HasEvent(ctx context.Context, q db.Q, kind string, targetID int64, e EventType) (bool, error) {
	return hasEvent(ctx, q, kind, targetID, e)
}

// DeleteEvents deletes the events of targets that are being deleted.
func DeleteEvents(ctx context.Context, tx *db.Tx, kind string, targets []int64) error {
	if len(targets) == 0 {
		return nil
	}
	return deleteEvents(ctx, tx, kind, targets)
}

const (
	// keep is how long events and emails are stored.
	keep = 60 * 24 * time.Hour
	// purgeBatch is the maximum number of rows that one statement deletes, so that
	// it does not block other writers for long.
	purgeBatch = 1000
)

// purge deletes old events and emails.
func (s *Service) purge(ctx context.Context) error {
	before := s.Now().Add(-keep)
	for _, table := range []string{"notification_acts", "notification_letters"} {
		for {
			n, err := deleteOld(ctx, s.DB, table, before, purgeBatch)
			if err != nil {
				return fmt.Errorf("purge notifications: %w", err)
			}
			if n < purgeBatch {
				break
			}
		}
	}
	return nil
}

// header returns the full name of a header of the service, such as X-Svc-Project.
func (s *Service) header(name string) string {
	return "X-" + strings.ToUpper(s.Name[:1]) + s.Name[1:] + "-" + name
}
