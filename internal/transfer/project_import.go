package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/badge"
	"svc/internal/board"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/lfs"
	"svc/internal/mail"
	"svc/internal/picture"
	"svc/internal/project"
	"svc/internal/repo"
	"svc/internal/repo/pushrule"
	"svc/internal/transfer/archive"
	"svc/internal/transfer/rows"
)

// NewProjectImport has the fields of a new import of a project.
type NewProjectImport struct {
	Name        string // default: the path
	Path        string
	NamespaceID *int64 // default: that of the actor
	Overrides   Overrides
	Size        int64 // of the file; 0 while no one knows
	File        io.Reader
}

// StartProjectImport takes a file and has a project made of it, in the background.
// Those may who may create the project; Unauthorized, Forbidden, NotFound, Invalid, and
// TooLarge for a file over the limit. The path is taken at once, but no one sees the
// project before the import is finished.
func (s *Service) StartProjectImport(ctx context.Context, by actor.Actor, n NewProjectImport) (*Import, *project.Project, error) {
	to := project.NewProject{Name: n.Name, Path: n.Path, NamespaceID: n.NamespaceID}
	if to.Name == "" {
		to.Name = n.Path
	}
	if err := s.Projects.CheckProject(ctx, by, to); err != nil {
		return nil, nil, err
	}
	if err := n.Overrides.apply(&project.Project{Settings: project.DefaultSettings()}); err != nil {
		return nil, nil, err
	}
	if to.NamespaceID == nil {
		own, err := s.Projects.OwnNamespace(ctx, by)
		if err != nil {
			return nil, nil, err
		}
		to.NamespaceID = &own
	}
	i := &Import{Project: true, Name: to.Name, Path: to.Path, ParentID: to.NamespaceID, overrides: n.Overrides}
	var p *project.Project
	err := s.receive(ctx, by, i, n.Size, n.File, func(ctx context.Context, tx *db.Tx) (err error) {
		if p, err = s.Projects.BeginProject(ctx, tx, by, to); err != nil {
			return err
		}
		i.draft = &p.ID
		if err := saveDraft(ctx, tx, i); err != nil {
			return err
		}
		return audit.Record(ctx, tx, by, s.Now(), audit.Event{
			Type: "project_import_created", Entity: audit.Entity{Type: audit.UserEntity, ID: by.ID, Path: by.Username},
			Target: audit.Target{Type: "ProjectImport", ID: i.ID, Details: p.FullPath}, Details: audit.Details{Add: "import", Message: "Project import started"},
		})
	})
	if err != nil {
		return nil, nil, err
	}
	return i, p, nil
}

// ProjectImport returns how far the import of a project from a file is, by its number,
// to the one who asked for it and to administrators; NotFound.
func (s *Service) ProjectImport(ctx context.Context, by actor.Actor, id int64) (*Import, error) {
	return s.imported(ctx, by, func() (*Import, error) { return findImport(ctx, s.DB, true, id) })
}

// ProjectImportOf is ProjectImport for the ID of the project that is made, also if it is
// not there yet or was deleted because the import failed.
func (s *Service) ProjectImportOf(ctx context.Context, by actor.Actor, projectID int64) (*Import, error) {
	return s.imported(ctx, by, func() (*Import, error) { return findImportOf(ctx, s.DB, projectID) })
}

// FileImport returns the report of the import that made a project, which the actor can
// see; nil if it was not made of a file, or that is long ago. Only the one who asked for
// the import and administrators get it.
func (s *Service) FileImport(ctx context.Context, by actor.Actor, p *project.Project) (*Import, error) {
	if p.ImportType != project.FromFile {
		return nil, nil
	}
	i, err := s.ProjectImportOf(ctx, by, p.ID)
	if errs.Is(err, errs.KindNotFound) {
		return nil, nil
	}
	return i, err
}

// ProjectImports lists the imports of projects that the actor asked for, the newest
// first.
func (s *Service) ProjectImports(ctx context.Context, by actor.Actor, p db.Paging) (db.Page[*Import], error) {
	return s.listImports(ctx, by, true, p)
}

// ProjectID is the ID of the project that an import makes, also if it is not there.
func (i *Import) ProjectID() int64 {
	switch {
	case i.OwnerID != nil:
		return *i.OwnerID
	case i.draft != nil:
		return *i.draft
	}
	return 0
}

// CancelProjectImport ends the import of a project, for the one who asked for it and
// administrators. What it has written is removed. NotFound; Conflict if it is over.
func (s *Service) CancelProjectImport(ctx context.Context, by actor.Actor, id int64) error {
	i, err := s.ProjectImport(ctx, by, id)
	if err != nil {
		return err
	}
	if i.State != Queued && i.State != Started {
		return errs.Conflict("No import is under way.")
	}
	err = s.failImport(ctx, i, "The import was canceled.")
	if errors.Is(err, db.ErrNoRows) {
		return errs.Conflict("No import is under way.")
	}
	return err
}

// beginProject notes another try, and removes what the one before has written.
func (s *Service) beginProject(ctx context.Context, i *Import) error {
	first := i.tries == 1
	if err := startImport(ctx, s.DB, i); err != nil || first || i.draft == nil {
		return err
	}
	for table := range rows.Tables() {
		if err := rows.Clear(ctx, s.DB, *i.draft, table); err != nil {
			return fmt.Errorf("clear draft %d: %w", *i.draft, err)
		}
	}
	p, err := s.Projects.DraftProject(ctx, s.DB, *i.draft)
	if errs.Is(err, errs.KindNotFound) {
		return nil // importProject says so
	}
	if err != nil {
		return err
	}
	if err := s.Content.Repos.DiscardProject(ctx, p); err != nil {
		return err
	}
	return s.DB.Tx(ctx, func(tx *db.Tx) error { return s.Content.Repos.DropOrphans(ctx, tx) })
}

// importProject fills the draft of a project and shows it.
func (s *Service) importProject(ctx context.Context, i *Import, by actor.Actor) error {
	gone := errs.Invalid("The project, or its group, was deleted.")
	if i.draft == nil {
		return gone
	}
	p, err := s.Projects.DraftProject(ctx, s.DB, *i.draft)
	if errs.Is(err, errs.KindNotFound) {
		return gone.Because(err)
	}
	if err != nil {
		return err
	}
	ghost, err := rows.Ghost(ctx, s.DB)
	if err != nil {
		return fmt.Errorf("find ghost user: %w", err)
	}
	put := &projectFilling{Service: s, by: by, i: i, p: p}
	put.to = rows.Target{Plan: s.Plan, Draft: rows.Draft(p), NamespaceID: p.NamespaceID, ByID: by.ID, GhostID: ghost, Now: s.Now()}
	err = s.readTwice(ctx, i, by, archive.Project(), func(people *archive.UserList) (archive.Taker, error) {
		for _, row := range people.List {
			u := rows.User{Username: row.Username, Name: row.Name}
			if d, ok, err := row.Digest(); err != nil {
				return nil, err
			} else if ok {
				u.ID = people.Digests[d]
			}
			put.to.Users = append(put.to.Users, u)
		}
		return put, nil
	})
	if errors.Is(err, errCanceled) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := put.complete(); err != nil {
		return err
	}
	return s.finishProject(ctx, i, by, put)
}

// errCanceled ends the reading of a file whose import was canceled.
var errCanceled = errors.New("the import was canceled")

// finishProject shows the project to everyone who may see it.
func (s *Service) finishProject(ctx context.Context, i *Import, by actor.Actor, put *projectFilling) error {
	put.report()
	now := s.Now()
	p := put.p
	if err := i.overrides.apply(p); err != nil {
		return err
	}
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		t := &i.Report.Imported
		message := fmt.Sprintf("Project imported with %d issues, %d merge requests", t.Issues, t.MergeRequests)
		if err := s.Projects.ShowProject(ctx, tx, by, p, message); err != nil {
			return err
		}
		if put.rules != nil {
			if err := s.Content.PushRules.Put(ctx, tx, p.ID, *put.rules); err != nil {
				return err
			}
		}
		if err := s.Content.Repos.Filled(ctx, tx, p); err != nil {
			return err
		}
		if err := s.Content.Code.Build(ctx, tx, p.ID); err != nil {
			return err
		}
		i.OwnerID, i.State, i.FinishedAt, i.Done = &p.ID, Finished, &now, i.Total
		if err := endImport(ctx, tx, i); err != nil {
			return err
		}
		if i.entity != nil {
			return s.finishEntity(ctx, tx, i, p.FullPath, nil)
		}
		return s.post(ctx, tx, by, mail.Email{
			Subject: "Project " + p.FullPath + " was imported",
			Lines:   []string{"The project " + p.FullName() + " was imported from the file that you uploaded."},
			Action:  "View the import", Path: fmt.Sprintf("/-/project_imports/%d", i.ID),
		})
	})
	if errors.Is(err, db.ErrNoRows) { // canceled
		return nil
	}
	if err != nil {
		return fmt.Errorf("finish import: %w", err)
	}
	s.dropFile(ctx, i)
	return nil
}

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
		if err := f.addMember(row); err != nil {
			if f.i.entity == nil || !errs.Is(err, errs.KindInvalid) {
				return err
			}
			f.i.Report.add(Missing{memberThing, "", "", "the row is not valid"})
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

// project takes the fields of the project, which it gets when it is shown.
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
		// The draft cannot be deleted, nor the import canceled, in between.
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

// addMember imports a member, or reports why it cannot.
func (f *projectFilling) addMember(row *archive.ProjectMemberRow) error {
	if row.User < 1 || int(row.User) > len(f.to.Users) {
		return errs.Invalid("it names user %d, whom users.ndjson does not have", row.User)
	}
	if _, err := time.Parse(time.DateOnly, row.ExpiresAt); err != nil && row.ExpiresAt != "" {
		return errs.Invalid("expires_at is not a day")
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

// board makes a board of a row, without what does not find its place here.
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

// list resolves what a list of a board, or the board itself, is about.
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

func (f *projectFilling) File(ctx context.Context, p archive.Part, name string, size int64, r io.Reader) error {
	if err := stillGoing(ctx, f.DB, f.i); errors.Is(err, db.ErrNoRows) {
		return errCanceled
	} else if err != nil {
		return err
	}
	_, base := splitPath(name)
	switch p {
	case archive.AvatarPart:
		return f.Projects.PaintDraft(ctx, f.to.Draft, &picture.File{Name: base, Data: r})
	case archive.RepositoryPart:
		return f.repository(ctx, r)
	case archive.WikiPart:
		return f.Wikis.Fill(ctx, f.to.Draft, f.wiki, r)
	case archive.LFSPart:
		return f.object(ctx, lfs.Pointer{OID: base, Size: size}, r)
	case archive.UploadFilePart:
		return f.upload(ctx, base, size, r)
	case archive.SnippetFilePart:
		return f.snippet(ctx, base, r)
	}
	return nil
}

func (f *projectFilling) repository(ctx context.Context, r io.Reader) error {
	if err := f.Content.Repos.FillProject(ctx, f.p, f.p.DefaultBranch, r); err != nil {
		return err
	}
	has, err := f.Content.Repos.HasBranch(ctx, f.p, f.p.DefaultBranch)
	if err != nil {
		return err
	}
	if !has && f.p.DefaultBranch != "" {
		return errs.Invalid("it does not have the default branch %.100q", f.p.DefaultBranch)
	}
	f.objects = true
	if f.i.entity != nil {
		return f.fetchLFS(ctx)
	}
	return nil
}

func (f *projectFilling) object(ctx context.Context, o lfs.Pointer, r io.Reader) error {
	if !f.Content.LFS.Allowed(ctx) {
		f.i.Report.count("lfs_object")
		return nil
	}
	return f.Content.LFS.Put(ctx, f.p, o, r)
}

func (f *projectFilling) upload(ctx context.Context, secret string, size int64, r io.Reader) error {
	want, err := rows.UploadSize(ctx, f.DB, f.p.ID, secret)
	if err != nil {
		return err
	}
	if want != size {
		return errs.Invalid("uploads.ndjson has no row for it with its size")
	}
	f.filled++
	return f.Content.Uploads.Fill(ctx, f.p.ID, secret, size, r)
}

func (f *projectFilling) snippet(ctx context.Context, name string, r io.Reader) error {
	number, err := strconv.ParseInt(strings.TrimSuffix(name, ".bundle"), 10, 64)
	if err != nil {
		return errs.Invalid("it has no number")
	}
	id := f.to.Snippet(number)
	if id == 0 && f.i.entity != nil && number <= int64(f.to.Snippets()) {
		f.snippets++ // it was refused, and is in the report
		return nil
	}
	if id == 0 {
		return errs.Invalid("snippets.ndjson has no row for it")
	}
	a := &repo.AuxRepo{Kind: repo.SnippetAuxRepo, SnippetID: &id, Storage: f.p.Storage}
	if err := f.DB.Tx(ctx, func(tx *db.Tx) error { return f.Content.Repos.AddAuxRepo(ctx, tx, a) }); err != nil {
		return err
	}
	f.snippets++
	return f.Content.Repos.FillAuxRepo(ctx, a, f.branches[number-1], r)
}

// complete returns Invalid if files are missing that rows promise.
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

// report adds what could not be taken over.
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
		return nobody
	}
	return usersOnly
}

const usersOnly = "users are mapped only in imports by an administrator"
