package transfer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/badge"
	"svc/internal/board"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/repo/pushrule"
	"svc/internal/transfer/archive"
	"svc/internal/transfer/rows"
)

// projectFilling fills the draft of a project.
type projectFilling struct {
	*Service
	by    actor.Actor
	i     *Import
	p     *project.Project
	to    rows.Target
	wiki  string // default branch
	rules *pushrule.Rules

	branches []string // of the snippets
	uploads  int
	filled   int // uploads that have a file
	snippets int // that have a repository
	objects  bool

	pending
	size  int            // bytes of the pending rows
	there map[int64]bool // members
}

func (f *projectFilling) Begin(*archive.Manifest) error {
	f.there = map[int64]bool{}
	return nil
}

func (f *projectFilling) Row(ctx context.Context, _ archive.Part, row any, size int) error {
	switch row := row.(type) {
	case *archive.ProjectRow:
		return f.project(row)
	case *archive.PersonRow:
		return nil
	case *archive.ProjectMemberRow:
		if err := f.i.leaveOut(f.addMember(row), Missing{memberThing, "", "", ""}); err != nil {
			return err
		}
	case *archive.ProjectBoardRow:
		f.boards = append(f.boards, row)
	case *archive.BadgeRow:
		f.badges = append(f.badges, &badge.Badge{Name: row.Name, LinkURL: row.LinkURL, ImageURL: row.ImageURL, CreatedAt: rows.Past(row.CreatedAt, f.to.Now)})
	default:
		switch row := row.(type) {
		case *archive.UploadRow:
			f.uploads++
		case *archive.MergeRequestRow:
			if f.i.entity != nil {
				if err := f.dropVersions(ctx, row); err != nil {
					return err
				}
			}
		case *archive.SnippetRow:
			if f.branches = append(f.branches, row.Branch); len(row.Branch) > 255 {
				return errs.InvalidField("branch", "is too long")
			}
			if len(f.branches) > maxSnippets { // they are held in memory
				return errs.Invalid("the file contains more than %d snippets", maxSnippets)
			}
		}
		f.rows = append(f.rows, row)
	}
	if f.size += size; f.waiting() >= batch || f.size >= batchBytes {
		return f.flush(ctx)
	}
	return nil
}

// maxSnippets is the maximum number of snippets of a file. An export has no more.
const maxSnippets = 100_000

// project reads the settings of the project, which are applied when it becomes
// visible.
func (f *projectFilling) project(row *archive.ProjectRow) error {
	p := f.p
	p.Description, p.Visibility, p.Archived, p.Topics = row.Description, project.Visibility(row.Visibility), row.Archived, row.Topics
	p.CreatedAt, p.Settings, f.wiki = rows.Past(row.CreatedAt, f.to.Now), project.DefaultSettings(), row.WikiBranch
	if p.Visibility == "" {
		p.Visibility = project.Private
	}
	p.DefaultBranch = row.DefaultBranch
	if err := decodeSettings(row.Settings, p); err != nil {
		return err
	}
	var err error
	f.rules, err = decodeRules(row.PushRules)
	return err
}

func (f *projectFilling) End(ctx context.Context, _ archive.Part) error { return f.flush(ctx) }

// flush writes the rows that are not written yet; see Import.written.
func (f *projectFilling) flush(ctx context.Context) error {
	if f.waiting() == 0 {
		return nil
	}
	err := f.write(ctx, f.pending)
	if err := f.i.written(ctx, err, f.writeSingly); err != nil {
		return err
	}
	f.pending, f.size = pending{}, 0
	return nil
}

// pending are rows that are not written yet.
type pending struct {
	rows    []any
	members []*project.Member
	boards  []*archive.ProjectBoardRow
	badges  []*badge.Badge
}

func (p *pending) waiting() int { return len(p.rows) + len(p.members) + len(p.boards) + len(p.badges) }

// writeSingly writes the pending rows one by one.
func (f *projectFilling) writeSingly(ctx context.Context) error {
	one := func(p pending, thing, name string) error {
		return f.i.leaveOut(f.write(ctx, p), Missing{thing, "", cutName(name), ""})
	}
	for _, row := range f.rows {
		before := f.to.Snippets()
		thing, name := describe(row)
		if err := one(pending{rows: []any{row}}, thing, name); err != nil {
			return err
		}
		if _, ok := row.(*archive.SnippetRow); ok && f.to.Snippets() == before {
			f.to.SkipSnippet()
		}
	}
	for _, m := range f.members {
		if err := one(pending{members: []*project.Member{m}}, memberThing, ""); err != nil {
			return err
		}
	}
	for _, b := range f.boards {
		if err := one(pending{boards: []*archive.ProjectBoardRow{b}}, boardThing, b.Name); err != nil {
			return err
		}
	}
	for _, b := range f.badges {
		if err := one(pending{badges: []*badge.Badge{b}}, "badges", b.Name); err != nil {
			return err
		}
	}
	return nil
}

// describe returns the relation and the name of a row.
func describe(row any) (relation, name string) {
	switch row := row.(type) {
	case *archive.ProjectLabelRow:
		return "labels", row.Name
	case *archive.ProjectMilestoneRow:
		return "milestones", row.Title
	case *archive.ProtectedRow:
		return "protected_refs", row.Name
	case *archive.IssueRow:
		return "issues", fmt.Sprintf("#%d %s", row.IID, row.Title)
	case *archive.IssueLinkRow:
		return "issue_links", fmt.Sprintf("#%d and #%d", row.Source, row.Target)
	case *archive.MergeRequestRow:
		return "merge_requests", fmt.Sprintf("!%d %s", row.IID, row.Title)
	case *archive.ReleaseRow:
		return "releases", row.Tag
	case *archive.SnippetRow:
		return "snippets", row.Title
	case *archive.NoteRow:
		switch {
		case row.Issue != 0:
			return "notes", fmt.Sprintf("a note on #%d", row.Issue)
		case row.MergeRequest != 0:
			return "notes", fmt.Sprintf("a note on !%d", row.MergeRequest)
		}
		return "notes", "a note on a snippet"
	case *archive.EventRow:
		return "resource_events", row.Kind
	case *archive.ScheduleRow:
		return "pipeline_schedules", row.Description
	case *archive.ApprovalRuleRow:
		return "approval_rules", row.Name
	case *archive.UploadRow:
		return "uploads", row.Name
	}
	return "rows", ""
}

// write writes rows in a transaction.
func (f *projectFilling) write(ctx context.Context, p pending) error {
	err := f.DB.Tx(ctx, func(tx *db.Tx) error {
		// Meanwhile the draft cannot be deleted, and the import cannot be canceled.
		if err := tx.Lock(ctx, "projects", f.p.ID); err != nil {
			return err
		}
		if err := stillGoing(ctx, tx, f.i); errors.Is(err, db.ErrNoRows) {
			return errCanceled
		} else if err != nil {
			return err
		}
		if _, err := f.Projects.DraftProject(ctx, tx, f.p.ID); err != nil {
			return err
		}
		if err := f.to.Put(ctx, tx, p.rows); err != nil {
			return err
		}
		if err := f.Badges.Put(ctx, tx, f.to.Draft, p.badges); err != nil {
			return err
		}
		for _, row := range p.boards {
			b, err := f.board(ctx, tx, row)
			if err != nil {
				return err
			}
			if err := f.Boards.Put(ctx, tx, f.to.Draft, b); err != nil {
				return err
			}
		}
		return f.Projects.AddDraftMembers(ctx, tx, f.to.Draft, p.members)
	})
	if err != nil {
		return err
	}
	f.to.Done()
	return nil
}

// addMember imports a member, or reports why that is not possible.
func (f *projectFilling) addMember(row *archive.ProjectMemberRow) error {
	if row.User < 1 || int(row.User) > len(f.to.Users) {
		return errs.Invalid("it names user %d, whom users.ndjson does not have", row.User)
	}
	if _, err := time.Parse(time.DateOnly, row.ExpiresAt); err != nil && row.ExpiresAt != "" {
		return errs.Invalid("expires_at is not a date")
	}
	level := project.Level(row.AccessLevel)
	if !level.Valid() || level == project.Minimal || level == project.NoAccess {
		return errs.InvalidField("access_level", "is not included in the list")
	}
	u := f.to.Users[row.User-1]
	why := ""
	switch {
	case u.ID == 0:
		f.i.Report.count(memberThing) // the user is in the report
		return nil
	case row.ExpiresAt != "" && row.ExpiresAt <= f.to.Now.UTC().Format(time.DateOnly):
		why = hasExpired
	case f.there[u.ID]:
		why = twice
	}
	if why != "" {
		f.i.Report.add(Missing{memberThing, "", cutName(u.Username), why})
		return nil
	}
	f.there[u.ID] = true
	f.members = append(f.members, &project.Member{UserID: u.ID, Level: level, ExpiresAt: row.ExpiresAt, CreatedBy: &f.by.ID, CreatedAt: rows.Past(row.CreatedAt, f.to.Now)})
	return nil
}

// board converts the row of a board, without labels, milestones and users that do
// not exist here.
func (f *projectFilling) board(ctx context.Context, tx *db.Tx, row *archive.ProjectBoardRow) (*board.Board, error) {
	b := &board.Board{
		Name: row.Name, HideBacklog: row.HideBacklog, HideClosed: row.HideClosed, Weight: row.Weight, LabelNames: row.Labels, CreatedAt: rows.Past(row.CreatedAt, f.to.Now),
	}
	own, err := f.list(ctx, tx, archive.ProjectListRow{Milestone: row.Milestone, Assignee: row.Assignee})
	if err != nil {
		return nil, err
	}
	b.MilestoneID, b.AssigneeID = own.MilestoneID, own.AssigneeID
	for _, given := range row.Lists {
		n := 0
		for _, there := range []bool{given.Label != "", given.Milestone != "", given.Assignee != 0} {
			if there {
				n++
			}
		}
		if n != 1 {
			return nil, errs.Invalid("a list of the board %.100q is not of one label, milestone or assignee", row.Name)
		}
		l, err := f.list(ctx, tx, given)
		if err != nil {
			return nil, err
		}
		if l.LabelID != nil || l.MilestoneID != nil || l.AssigneeID != nil {
			b.Lists = append(b.Lists, l)
		}
	}
	return b, nil
}

// list resolves the label, milestone or user of a list or of the board.
func (f *projectFilling) list(ctx context.Context, tx *db.Tx, row archive.ProjectListRow) (*board.List, error) {
	l := &board.List{}
	if row.Label != "" {
		id, err := f.to.FindLabel(ctx, tx, row.Label)
		if err != nil {
			return nil, err
		}
		if id != 0 {
			l.LabelID = &id
		}
	}
	if row.Milestone != "" {
		id, err := f.to.FindMilestone(ctx, tx, row.Milestone)
		if err != nil {
			return nil, err
		}
		if id != 0 {
			l.MilestoneID = &id
		}
	}
	if row.Assignee < 0 || int(row.Assignee) > len(f.to.Users) {
		return nil, errs.Invalid("it names user %d, whom users.ndjson does not have", row.Assignee)
	}
	if row.Assignee > 0 && f.to.Users[row.Assignee-1].ID != 0 {
		l.AssigneeID = &f.to.Users[row.Assignee-1].ID
	}
	return l, nil
}

// complete returns Invalid if files are missing that rows refer to.
func (f *projectFilling) complete() error {
	switch {
	case f.filled != f.uploads:
		return errs.Invalid("The file has rows of uploads without their files.")
	case f.snippets != f.to.Snippets():
		return errs.Invalid("The file has snippets without their repositories.")
	case f.p.DefaultBranch != "" && !f.objects:
		return errs.Invalid("The file has a default branch, but no repository.")
	}
	return nil
}

// report adds the users who were not mapped, and the number of rows that were not
// imported.
func (f *projectFilling) report() {
	r := &f.i.Report
	for _, u := range f.to.Users {
		if u.ID == 0 {
			r.add(Missing{userThing, "", cutName(u.Username), f.unmappedReason()})
		}
	}
	if r.Lost == nil {
		r.Lost = map[string]int64{}
	}
	for thing, n := range f.to.Lost {
		r.Lost[thing] += n
	}
}

// unmappedReason returns why no account was found for a user. Only administrators get
// the actual reason.
func (f *projectFilling) unmappedReason() string {
	if f.by.Admin {
		return noAccount
	}
	return usersOnly
}

const usersOnly = "users are mapped only in imports by an administrator"
