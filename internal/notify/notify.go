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

// Act is something that happened to a thing and is to be told.
type Act struct {
	ID        int64
	Event     Event
	Kind      string // of the thing: "Issue"
	ThingID   int64
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

// People are those who have to do with an act; somebody may be several of them.
type People struct {
	Parts     []int64 // who took part: authors, assignees, who wrote
	Asked     []int64 // who asked to be told of this thing, or of one of its labels
	Left      []int64 // who does not want to be told of this thing
	Assignees []int64
	Reviewers []int64
	Touched   []int64 // whom the act itself concerns: also who is not assigned any more
	Others    []int64 // who is told as his settings say, of events such as the end of his pipeline
	Text      string  // in which others may be mentioned
	Mentions  []string
	// Members tells whether all members of the project are told.
	Members bool
	// Quiet leaves out those who watch the project: it is nobody's concern but
	// that of the people above.
	Quiet bool
}

// View is a thing as a reader sees it, with what happened to it.
type View struct {
	Project  *project.Project
	Subject  string // "Title (#1)"
	Word     string // what it is, for the button: "issue"
	Path     string
	First    bool // the letter tells how it began
	Sections []mail.Section
	Told     []*Act      // what these are about: the reader knows of no others
	Headers  [][2]string // names without the prefix of the service
}

// Tell adds what happened: of each act its section, nil for one of which the
// reader may know nothing. begun is the event with which such a thing begins.
func (v *View) Tell(acts []*Act, begun Event, section func(a *Act) (*mail.Section, error)) error {
	for _, a := range acts {
		said, err := section(a)
		if err != nil {
			return err
		}
		if said == nil {
			continue
		}
		v.First = v.First || a.Event == begun
		v.Sections, v.Told = append(v.Sections, *said), append(v.Told, a)
	}
	if len(v.Told) == 1 && v.Told[0].NoteID != 0 {
		v.Path += "#note_" + strconv.FormatInt(v.Told[0].NoteID, 10)
	}
	return nil
}

// Source is what the feature that has things of a kind knows of them.
type Source interface {
	// People gives who has to do with an act.
	People(ctx context.Context, a *Act) (People, error)
	// Look shows acts on one thing to a reader: NotFound when he does not see
	// it. What of them he may not know is left out.
	Look(ctx context.Context, by actor.Actor, acts []*Act) (*View, error)
	// Follow notes that somebody takes part in a thing, unless he left it, or
	// that he leaves it. Whether he may see it was asked.
	Follow(ctx context.Context, userID, thingID int64, want bool) error
	// Lasting tells whether such a thing can be left: else letters about it say
	// where the settings are.
	Lasting() bool
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
	// Pause is how long a letter waits for more that belongs into it.
	Pause time.Duration
	// Name is that of the service, which headers begin with.
	Name string
}

// DefaultPause is a Pause in which somebody who labels, assigns and comments is
// done.
const DefaultPause = 30 * time.Second

// Service is the letters of the installation.
type Service struct {
	Deps
	sources map[string]Source
}

// New makes the service, takes on its background work, and tells of projects
// that move.
func New(d Deps) *Service {
	s := &Service{Deps: d, sources: map[string]Source{}}
	queue.Handle(d.Queue, s.Address)
	queue.Handle(d.Queue, s.Deliver, queue.Timeout(time.Minute))
	d.Queue.Every("notification_retention", 6*time.Hour, s.purge)
	d.Projects.OnAct(s.projectActed)
	s.Register(projectKind, projects{s})
	return s
}

// Register says who knows the things of a kind; it is called while the program
// is put together.
func (s *Service) Register(kind string, src Source) { s.sources[kind] = src }

// Fit makes HTML that is safe to show fit for a letter.
func (s *Service) Fit(safe string) template.HTML {
	return template.HTML(markup.Letter(safe, s.Mail.Site))
}

// Enabled tells whether anybody is told of anything.
func (s *Service) Enabled() bool { return s.Mail.Enabled() }

// Tell has those told of an act whom it concerns, once tx is committed. Whether
// its author may act was asked there. Without a mail server nobody is told.
func (s *Service) Tell(ctx context.Context, tx *db.Tx, a Act) error {
	if !s.Enabled() || s.sources[a.Kind] == nil {
		return nil
	}
	a.CreatedAt = s.Now()
	id, err := insertAct(ctx, tx, &a)
	if err != nil {
		return fmt.Errorf("tell of %s %d: %w", a.Kind, a.ThingID, err)
	}
	if id == 0 {
		return nil // it has been told
	}
	return s.Queue.Add(ctx, tx, Addressing{ActID: id})
}

// HasTold tells whether an event of a thing has been told of before.
func (s *Service) HasTold(ctx context.Context, q db.Q, kind string, thingID int64, e Event) (bool, error) {
	return hasAct(ctx, q, kind, thingID, e)
}

// Forget takes what is to be told of things away that are deleted.
func Forget(ctx context.Context, tx *db.Tx, kind string, things []int64) error {
	if len(things) == 0 {
		return nil
	}
	return deleteActs(ctx, tx, kind, things)
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
