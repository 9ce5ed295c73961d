// Package notify tells people by letter of what happens to the things that
// concern them: it knows what each wants to be told of, decides who is told of
// an act and why, and sends the letters.
//
// A feature that has things tells of an act in its transaction (Tell) and
// registers a Source, which knows the people of a thing and shows it to a
// reader. The queue does the rest: who is told is decided soon after the act,
// and whether he may still see the thing when the letter is sent.
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
	"svc/internal/mail"
	"svc/internal/markup"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/secret"
	"svc/internal/user"
)

// Event is something that happened to a thing and is to be told.
type Event struct {
	ID        int64
	Type     EventType
	TargetKind      string // of the thing: "Issue"
	TargetID   int64
	ProjectID int64
	AuthorID  int64  // 0: nobody did it
	Once      string // of acts with the same key the first alone is told; empty for all
	CreatedAt time.Time
	Details
}

// Details are what a Source needs beside the thing. They are stored as JSON.
type Details struct {
	NoteID    int64    `json:"note_id,omitempty"`
	Before    []int64  `json:"before,omitempty"`    // who was assigned, or asked to review, before
	After     []int64  `json:"after,omitempty"`     // and after it
	Mentioned []string `json:"mentioned,omitempty"` // the names that are new in a text
	From      string   `json:"from,omitempty"`      // what something was before
	To        string   `json:"to,omitempty"`
	Count     int      `json:"count,omitempty"` // of what happened at once
}

// Recipients are those who have to do with an act; somebody may be several of them.
type Recipients struct {
	Participants     []int64 // who took part: authors, assignees, who wrote
	Subscribers     []int64 // who asked to be told of this thing, or of one of its labels
	Unsubscribed      []int64 // who does not want to be told of this thing
	Assignees []int64
	Reviewers []int64
	Affected   []int64 // whom the act itself concerns: also who is not assigned any more
	BySettings    []int64 // who is told as his settings say, of events such as the end of his pipeline
	Text      string  // in which others may be mentioned
	Mentions  []string
	// AllMembers tells whether all members of the project are told.
	AllMembers bool
	// SkipWatchers leaves out those who watch the project: it is nobody's concern but
	// that of the people above.
	SkipWatchers bool
}

// View is a thing as a reader sees it, with what happened to it.
type View struct {
	Project  *project.Project
	Subject  string // "Title (#1)"
	Noun     string // what it is, for the button: "issue"
	Path     string
	First    bool // the letter tells how it began
	Sections []mail.Section
	Events     []*Event      // what these are about: the reader knows of no others
	Headers  [][2]string // names without the prefix of the service
}

// Notify adds what happened: of each act its section, nil for one of which the
// reader may know nothing. begun is the event with which such a thing begins.
func (v *View) Add(acts []*Event, begun EventType, section func(a *Event) (*mail.Section, error)) error {
	for _, a := range acts {
		said, err := section(a)
		if err != nil {
			return err
		}
		if said == nil {
			continue
		}
		v.First = v.First || a.Type == begun
		v.Sections, v.Events = append(v.Sections, *said), append(v.Events, a)
	}
	if len(v.Events) == 1 && v.Events[0].NoteID != 0 {
		v.Path += "#note_" + strconv.FormatInt(v.Events[0].NoteID, 10)
	}
	return nil
}

// Source is what the feature that has things of a kind knows of them.
type Source interface {
	// Recipients gives who has to do with an act.
	Recipients(ctx context.Context, a *Event) (Recipients, error)
	// View shows acts on one thing to a reader: NotFound when he does not see
	// it. What of them he may not know is left out.
	View(ctx context.Context, by actor.Actor, acts []*Event) (*View, error)
	// Subscribe notes that somebody takes part in a thing, unless he left it, or
	// that he leaves it. Whether he may see it was asked.
	Subscribe(ctx context.Context, userID, thingID int64, want bool) error
	// CanUnsubscribe tells whether such a thing can be left: else letters about it say
	// where the settings are.
	CanUnsubscribe() bool
}

// Deps are what the service needs.
type Deps struct {
	DB       *db.DB
	Queue    *queue.Queue
	Keys     *secret.Keyring
	Mail     *mail.Sender
	Users    *user.Service
	Projects *project.Service
	Log      *slog.Logger
	Now      func() time.Time
	// Delay is how long a letter waits for more that belongs into it.
	Delay time.Duration
	// Name is that of the service, which headers begin with.
	Name string
}

// DefaultDelay is a Pause in which somebody who labels, assigns and comments is
// done.
const DefaultDelay = 30 * time.Second

// Service is the letters of the installation.
type Service struct {
	Deps
	sources map[string]Source
}

// New makes the service, takes on its background work, and tells of projects
// that move.
func New(d Deps) *Service {
	s := &Service{Deps: d, sources: map[string]Source{}}
	queue.Handle(d.Queue, s.FindRecipients)
	queue.Handle(d.Queue, s.Deliver, queue.Timeout(time.Minute))
	d.Queue.Every("notification_retention", 6*time.Hour, s.purge)
	d.Projects.OnAct(s.projectChanged)
	s.Register(projectKind, projects{s})
	return s
}

// Register says who knows the things of a kind; it is called while the program
// is put together.
func (s *Service) Register(kind string, src Source) { s.sources[kind] = src }

// EmailHTML makes HTML that is safe to show fit for a letter.
func (s *Service) EmailHTML(safe string) template.HTML {
	return template.HTML(markup.EmailHTML(safe, s.Mail.Site))
}

// Enabled tells whether anybody is told of anything.
func (s *Service) Enabled() bool { return s.Mail.Enabled() }

// Notify has those told of an act whom it concerns, once tx is committed. Whether
// its author may act was asked there. Without a mail server nobody is told.
func (s *Service) Notify(ctx context.Context, tx *db.Tx, a Event) error {
	if !s.Enabled() || s.sources[a.TargetKind] == nil {
		return nil
	}
	a.CreatedAt = s.Now()
	id, err := insertEvent(ctx, tx, &a)
	if err != nil {
		return fmt.Errorf("tell of %s %d: %w", a.TargetKind, a.TargetID, err)
	}
	if id == 0 {
		return nil // it has been told
	}
	return s.Queue.Add(ctx, tx, RecipientWork{EventID: id})
}

// HasEvent tells whether an event of a thing has been told of before.
func (s *Service) HasEvent(ctx context.Context, q db.Q, kind string, thingID int64, e EventType) (bool, error) {
	return hasEvent(ctx, q, kind, thingID, e)
}

// DeleteEvents takes what is to be told of things away that are deleted.
func DeleteEvents(ctx context.Context, tx *db.Tx, kind string, things []int64) error {
	if len(things) == 0 {
		return nil
	}
	return deleteEvents(ctx, tx, kind, things)
}

const (
	// keep is how long it is remembered who was told of what.
	keep = 60 * 24 * time.Hour
	// purgeBatch is how many rows one statement removes, so that others get
	// their turn.
	purgeBatch = 1000
)

// Purge forgets what was told long ago.
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

// header is the name of a header of ours: X-Svc-Project.
func (s *Service) header(name string) string {
	return "X-" + strings.ToUpper(s.Name[:1]) + s.Name[1:] + "-" + name
}
