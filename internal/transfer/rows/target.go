package rows

import (
	"context"
	"strings"
	"time"
	"unicode"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/transfer/archive"
)

// User is a user of the file: who they are here, and how the file calls them.
type User struct {
	ID             int64 // 0 if no account was found
	Username, Name string
}

// Target writes the rows of a project into a draft.
type Target struct {
	Plan        *plan.Service
	Draft       *project.Draft
	NamespaceID int64
	ByID        int64 // the importer
	GhostID     int64
	Users       []User // by their numbers, from 1
	Now         time.Time

	// Lost counts what was not imported, by kind.
	Lost map[string]int64

	snippets []int64 // IDs, in the order of their rows

	// Of the transaction, which may run again.
	lost       map[string]int64
	made       []int64
	labels     map[string]int64
	milestones map[string]int64
	noteable   archive.Noteable // the last one that was looked up, and its ID
	noteableID int64
	comments   map[plan.Target]int64 // new comments
}

// The keys of Lost.
const (
	lostUser  = "user_reference"
	lostLabel = "label"
	lostRow   = "row"
)

// Put writes rows in a transaction. Invalid.
func (t *Target) Put(ctx context.Context, tx *db.Tx, rows []any) error {
	t.lost, t.made = map[string]int64{}, nil
	t.labels, t.milestones = map[string]int64{}, map[string]int64{}
	t.noteable, t.noteableID, t.comments = archive.Noteable{}, 0, map[plan.Target]int64{}
	for _, row := range rows {
		if err := t.put(ctx, tx, row); err != nil {
			return err
		}
	}
	for on, n := range t.comments {
		if err := countComments(ctx, tx, on, n); err != nil {
			return err
		}
	}
	return nil
}

// Done is called after the transaction of Put was committed.
func (t *Target) Done() {
	if t.Lost == nil {
		t.Lost = map[string]int64{}
	}
	for kind, n := range t.lost {
		t.Lost[kind] += n
	}
	t.snippets = append(t.snippets, t.made...)
	t.lost, t.made = nil, nil
}

// Snippet returns the ID of a snippet by the number of its row; 0 if there is none.
func (t *Target) Snippet(number int64) int64 {
	if number < 1 || number > int64(len(t.snippets)) {
		return 0
	}
	return t.snippets[number-1]
}

// SkipSnippet notes that the row of a snippet was refused.
func (t *Target) SkipSnippet() { t.snippets = append(t.snippets, 0) }

// ForgetSnippet notes that the snippet of a row was deleted again.
func (t *Target) ForgetSnippet(number int64) { t.snippets[number-1] = 0 }

// Snippets returns the number of snippets.
func (t *Target) Snippets() int { return len(t.snippets) }

// put writes a row. It changes texts, and the transaction may run again, so it does
// that to a copy.
func (t *Target) put(ctx context.Context, tx *db.Tx, row any) error {
	switch row := row.(type) {
	case *archive.UploadRow:
		return t.putUpload(ctx, tx, row)
	case *archive.ProjectLabelRow:
		return t.putLabel(ctx, tx, row)
	case *archive.ProjectMilestoneRow:
		return t.putMilestone(ctx, tx, row)
	case *archive.ProtectedRow:
		return t.putProtected(ctx, tx, row)
	case *archive.IssueRow:
		r := *row
		return t.putIssue(ctx, tx, &r)
	case *archive.IssueLinkRow:
		return t.putIssueLink(ctx, tx, row)
	case *archive.MergeRequestRow:
		r := *row
		return t.putMergeRequest(ctx, tx, &r)
	case *archive.ReleaseRow:
		return t.putRelease(ctx, tx, row)
	case *archive.SnippetRow:
		r := *row
		return t.putSnippet(ctx, tx, &r)
	case *archive.NoteRow:
		r := *row
		return t.putNote(ctx, tx, &r)
	case *archive.CommentRow:
		r := *row
		return t.putComment(ctx, tx, &r)
	case *archive.EventRow:
		return t.putEvent(ctx, tx, row)
	case *archive.ScheduleRow:
		return t.putSchedule(ctx, tx, row)
	case *archive.ApprovalRuleRow:
		return t.putApprovalRule(ctx, tx, row)
	}
	return nil
}

// find returns the account of a user of the file; nil if there is none. Invalid for a
// number that the file does not have.
func (t *Target) find(p archive.Person) (*int64, error) {
	if p < 0 || int(p) > len(t.Users) {
		return nil, errs.Invalid("it names user %d, whom users.ndjson does not have", p)
	}
	if p == 0 || t.Users[p-1].ID == 0 {
		return nil, nil
	}
	return &t.Users[p-1].ID, nil
}

// need is find for a reference without which there is nothing to write.
func (t *Target) need(p archive.Person) (*int64, error) {
	id, err := t.find(p)
	if err == nil && id == nil {
		t.lost[lostUser]++
	}
	return id, err
}

// orGhost is find for an author: one without an account is the ghost user.
func (t *Target) orGhost(p archive.Person) (int64, error) {
	id, err := t.find(p)
	if err != nil || id == nil {
		return t.GhostID, err
	}
	return *id, nil
}

// signed returns the author of a text. If they have no account here, the text begins
// with a line that names them.
func (t *Target) signed(p archive.Person, at time.Time, text *string) (int64, error) {
	id, err := t.orGhost(p)
	if err != nil || id != t.GhostID || p == 0 {
		return id, err
	}
	u := t.Users[p-1]
	by := plainName(u.Name)
	if username := plainName(u.Username); username != "" {
		by += " (" + strings.ReplaceAll(username, "_", `\_`) + ")"
	}
	signed := "*By " + strings.TrimSpace(by) + " on " + at.UTC().Format("2 January 2006, 15:04 MST") + "*\n\n" + *text
	if len(signed) <= plan.MaxText {
		*text = signed
	}
	return id, nil
}

// plainName returns a name without what Markdown could read as something else: a
// mention, a link, an image.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(" -.'_", r) {
			return r
		}
		return -1
	}, name[:min(len(name), 200)])
}

// past rounds a time to what databases store. A time in the future or before 1970
// becomes the current time.
func (t *Target) past(at time.Time) time.Time { return Past(at, t.Now) }

// Past is the time of a row that is imported now.
func Past(at, now time.Time) time.Time {
	if at.After(now) || at.Year() < 1970 {
		return now
	}
	return at.UTC().Truncate(time.Microsecond)
}

func (t *Target) pastOrNull(at *time.Time) *time.Time {
	if at == nil {
		return nil
	}
	past := t.past(*at)
	return &past
}
