package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/badge"
	"svc/internal/board"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/picture"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/secret"
	"svc/internal/transfer/archive"
	"svc/internal/transfer/rows"
)

// filling creates the groups of an import as drafts, which no user can see.
type filling struct {
	*Service
	by     actor.Actor
	i      *Import
	people map[archive.Digest]int64
	drafts []*project.Draft // by their numbers, from 0
	paths  map[string]*project.Draft
	branch string // of the wiki of the current group

	pathBytes int // of all groups

	groupPending
	waiting int            // number of the pending rows
	size    int            // their bytes
	there   map[int64]bool // the members of the current group
}

// groupPending are rows of the current part of a group that are not written yet.
type groupPending struct {
	labels     []*plan.Label
	milestones []*plan.Milestone
	boards     []*archive.BoardRow
	badges     []*badge.Badge
	members    []*project.Member
}

// batch is the maximum number of rows in one transaction, and batchBytes their
// maximum size, so that other writers do not wait long.
const (
	batch      = 500
	batchBytes = 4 << 20
)

// maxPaths is the maximum size in bytes of the paths of all groups of a file. They
// are held in memory.
const maxPaths = 64 << 20

func (f *filling) Begin(*archive.Manifest) error {
	f.paths = map[string]*project.Draft{}
	return nil
}

// group returns the group whose parts are being read.
func (f *filling) group() *project.Draft { return f.drafts[len(f.drafts)-1] }

func (f *filling) Row(ctx context.Context, _ archive.Part, row any, size int) error {
	if row, ok := row.(*archive.GroupRow); ok {
		return f.startGroup(ctx, row)
	}
	if f.group() == nil {
		return nil // it was refused, and is in the report
	}
	switch row := row.(type) {
	case *archive.LabelRow:
		made := f.past(row.CreatedAt)
		f.labels = append(f.labels, &plan.Label{Name: row.Name, Color: row.Color, Description: row.Description, CreatedAt: made, UpdatedAt: f.past(row.UpdatedAt)})
	case *archive.MilestoneRow:
		f.milestones = append(f.milestones, &plan.Milestone{
			IID: row.IID, Title: row.Title, Description: row.Description, State: plan.MilestoneState(row.State), StartDate: row.StartDate, DueDate: row.DueDate,
			CreatedAt: f.past(row.CreatedAt), UpdatedAt: f.past(row.UpdatedAt),
		})
	case *archive.BoardRow:
		f.boards = append(f.boards, row)
	case *archive.BadgeRow:
		f.badges = append(f.badges, &badge.Badge{Name: row.Name, LinkURL: row.LinkURL, ImageURL: row.ImageURL, CreatedAt: f.past(row.CreatedAt)})
	case *archive.MemberRow:
		if err := f.i.leaveOut(f.addMember(row), Missing{memberThing, f.group().Path, cutName(row.Username), ""}); err != nil {
			return err
		}
	}
	f.waiting++
	if f.size += size; f.waiting >= batch || f.size >= batchBytes {
		return f.flush(ctx)
	}
	return nil
}

// past rounds a time to what databases store. A time in the future or before 1970
// becomes the current time.
func (f *filling) past(t time.Time) time.Time {
	return rows.Past(t, f.Now())
}

func (f *filling) End(ctx context.Context, _ archive.Part) error { return f.flush(ctx) }

// flush writes the rows that are not written yet; see Import.written.
func (f *filling) flush(ctx context.Context) error {
	if f.waiting == 0 {
		return nil
	}
	err := f.write(ctx, f.groupPending)
	if err := f.i.written(ctx, err, f.writeSingly); err != nil {
		return err
	}
	f.groupPending, f.waiting, f.size = groupPending{}, 0, 0
	return nil
}

// written returns the error of a batch of rows. Of what was read from another server, a
// batch that is refused is written again by singly, which leaves out and reports the
// rows that are refused.
func (i *Import) written(ctx context.Context, err error, singly func(context.Context) error) error {
	if i.refuses(err) {
		err = singly(ctx)
	}
	if e, ok := errors.AsType[*errs.Error](err); ok {
		return e.Coded(archive.InBatch)
	}
	return err
}

// refuses reports whether an error is about an object of another server, which is
// left out: it is invalid or exists already. Errors of a file end its import.
func (i *Import) refuses(err error) bool {
	return i.entity != nil && (errs.Is(err, errs.KindInvalid) || errs.Is(err, errs.KindConflict))
}

// leaveOut reports a row or file if it is refused, and returns other errors.
func (i *Import) leaveOut(err error, row Missing) error {
	if !i.refuses(err) {
		return err
	}
	e, _ := errs.As(err)
	shown := *e.Because(nil)
	row.Why = strings.TrimSuffix(shown.Error(), ".")
	i.Report.add(row)
	return nil
}

// writeSingly writes the pending rows one by one.
func (f *filling) writeSingly(ctx context.Context) error {
	one := func(p groupPending, thing, name string) error {
		return f.i.leaveOut(f.write(ctx, p), Missing{thing, f.group().Path, cutName(name), ""})
	}
	for _, l := range f.labels {
		if err := one(groupPending{labels: []*plan.Label{l}}, "labels", l.Name); err != nil {
			return err
		}
	}
	for _, m := range f.milestones {
		if err := one(groupPending{milestones: []*plan.Milestone{m}}, "milestones", m.Title); err != nil {
			return err
		}
	}
	for _, b := range f.boards {
		if err := one(groupPending{boards: []*archive.BoardRow{b}}, boardThing, b.Name); err != nil {
			return err
		}
	}
	for _, b := range f.badges {
		if err := one(groupPending{badges: []*badge.Badge{b}}, "badges", b.Name); err != nil {
			return err
		}
	}
	for _, m := range f.members {
		if err := one(groupPending{members: []*project.Member{m}}, memberThing, ""); err != nil {
			return err
		}
	}
	return nil
}

// write writes rows of the current group in a transaction.
func (f *filling) write(ctx context.Context, p groupPending) error {
	d := f.group()
	var lost Report
	err := f.DB.Tx(ctx, func(tx *db.Tx) error {
		lost = Report{} // it may run twice
		if err := f.Plan.PutLabels(ctx, tx, d, p.labels); err != nil {
			return err
		}
		if len(p.milestones) > 0 {
			if err := f.Plan.PutMilestones(ctx, tx, d, p.milestones); err != nil {
				return err
			}
		}
		if err := f.Badges.Put(ctx, tx, d, p.badges); err != nil {
			return err
		}
		for _, row := range p.boards {
			b, err := f.board(ctx, tx, d, row, &lost)
			if err != nil {
				return err
			}
			if err := f.Boards.Put(ctx, tx, d, b); err != nil {
				return err
			}
		}
		return f.Projects.AddDraftMembers(ctx, tx, d, p.members)
	})
	if err != nil {
		return err
	}
	f.i.Report.addAll(&lost)
	return nil
}

// startGroup creates the next group. A subgroup of another server that is refused here
// is left out, with everything below it.
func (f *filling) startGroup(ctx context.Context, row *archive.GroupRow) error {
	was := len(f.drafts)
	err := f.addGroup(ctx, row)
	if err == nil || was == 0 {
		return err
	}
	if err := f.i.leaveOut(err, Missing{"groups", "", cutName(row.Path), ""}); err != nil {
		return err
	}
	f.drafts = append(f.drafts, nil) // groups are numbered
	return nil
}

// addGroup creates the next group. The draft is recorded in the same transaction, so
// that another run finds and removes it.
func (f *filling) addGroup(ctx context.Context, row *archive.GroupRow) error {
	g := project.DraftGroup{Path: row.Path, Name: row.Name, Description: row.Description, CreatedAt: f.past(row.CreatedAt), Settings: toSettings(&row.Settings)}
	top := len(f.drafts) == 0
	if top != (row.Path == "") {
		return errs.Invalid("the path must be empty for the first group, and only for it")
	}
	if f.pathBytes += len(row.Path); f.pathBytes > maxPaths {
		return errs.Invalid("the paths of the groups have more than %d MiB", maxPaths>>20)
	}
	var d *project.Draft
	err := f.DB.Tx(ctx, func(tx *db.Tx) (err error) {
		if !top {
			above, _ := splitPath(row.Path)
			parent := f.paths[strings.ToLower(above)]
			if parent == nil && f.i.entity != nil {
				return errs.Invalid("the group above it was not imported")
			}
			if parent == nil {
				return errs.Invalid("the group above %.100q does not come before it", row.Path)
			}
			d, err = f.Projects.AddDraft(ctx, tx, f.by, parent, g)
			if refusal, ok := errs.As(err); ok && f.i.entity != nil && len(refusal.Fields["name"]) > 0 {
				_, g.Name = splitPath(row.Path) // for a name that is not allowed here
				d, err = f.Projects.AddDraft(ctx, tx, f.by, parent, g)
			}
			return err
		}
		if d, err = f.Projects.BeginDraft(ctx, tx, f.by, secret.Token(""), g); err != nil {
			return err
		}
		f.i.draft = &d.ID
		return saveDraft(ctx, tx, f.i)
	})
	if err != nil {
		return err
	}
	f.drafts = append(f.drafts, d)
	f.paths[strings.ToLower(row.Path)] = d
	f.branch, f.there = row.WikiBranch, map[int64]bool{}
	return nil
}

// splitPath cuts the last segment off a path.
func splitPath(path string) (above, last string) {
	if at := strings.LastIndexByte(path, '/'); at >= 0 {
		return path[:at], path[at+1:]
	}
	return "", path
}

func toSettings(r *archive.SettingsRow) project.GroupSettings {
	return project.GroupSettings{
		ProjectCreationLevel: r.ProjectCreationLevel, SubgroupCreationLevel: r.SubgroupCreationLevel, RequestAccessEnabled: r.RequestAccessEnabled,
		TwoFactorGracePeriod: r.TwoFactorGracePeriod,
		ShareWithGroupLock:   r.ShareWithGroupLock, MembershipLock: r.MembershipLock, LFSEnabled: r.LFSEnabled, EmailsEnabled: r.EmailsEnabled,
		MentionsDisabled: r.MentionsDisabled, DefaultBranch: r.DefaultBranch,
		SharedRunnersSetting: r.SharedRunnersSetting, WikiAccessLevel: project.Feature(r.WikiAccessLevel),
		OnlyAllowMergeIfPipelineSucceeds: r.OnlyAllowMergeIfPipelineSucceeds, AllowMergeOnSkippedPipeline: r.AllowMergeOnSkippedPipeline,
		OnlyAllowMergeIfAllDiscussionsAreResolved: r.OnlyAllowMergeIfAllDiscussionsAreResolved, Approvals: project.ApprovalLimits(r.Approvals),
	}
}

func (f *filling) File(ctx context.Context, p archive.Part, name string, _ int64, r io.Reader) error {
	if f.group() == nil {
		return nil
	}
	if p == archive.AvatarPart {
		_, base := splitPath(name)
		return f.i.leaveOut(f.Projects.PaintDraft(ctx, f.group(), &picture.File{Name: base, Data: r}), Missing{"avatar", f.group().Path, "", ""})
	}
	return f.i.leaveOut(f.Wikis.Fill(ctx, f.group(), f.branch, r), Missing{"wiki", f.group().Path, "", ""})
}

// find returns the account of a person; ok is false if there is none.
func (f *filling) find(p *archive.PersonRow) (id int64, ok bool, err error) {
	d, ok, err := p.Digest()
	if err != nil || !ok {
		return 0, false, err
	}
	id = f.people[d]
	return id, id != 0, nil
}

const (
	noAccount  = "no account has confirmed this email address"
	adminsOnly = "members and assignees are mapped only in imports by an administrator"
	noAddress  = "the file has no confirmed email address for this person"
	notThere   = "no object with this name exists in the parent groups"
	notOnTop   = "minimal access is available in top-level groups only"
	hasExpired = "the membership has expired"
	twice      = "this person is already a member with another email address"
)

// unmappedReason returns why no account was found for a person. Only administrators
// get the actual reason.
func (f *filling) unmappedReason(p *archive.PersonRow) string {
	if !f.by.Admin {
		return adminsOnly
	}
	if p.Email == "" {
		return noAddress
	}
	return noAccount
}

// addMember imports a member, or reports why that is not possible.
func (f *filling) addMember(row *archive.MemberRow) error {
	id, ok, err := f.find(&row.PersonRow)
	if err != nil {
		return err
	}
	if _, err := time.Parse(time.DateOnly, row.ExpiresAt); err != nil && row.ExpiresAt != "" {
		return errs.Invalid("expires_at is not a date")
	}
	if !project.Level(row.AccessLevel).Valid() {
		return errs.InvalidField("access_level", "is not included in the list")
	}
	why := ""
	switch {
	case !ok:
		why = f.unmappedReason(&row.PersonRow)
	case row.ExpiresAt != "" && row.ExpiresAt <= f.Now().UTC().Format(time.DateOnly):
		why = hasExpired
	case project.Level(row.AccessLevel) == project.Minimal && (f.i.ParentID != nil || f.group().Path != ""):
		why = notOnTop
	case f.there[id]:
		why = twice
	}
	if why != "" {
		f.i.Report.add(Missing{memberThing, f.group().Path, cutName(row.Username), why})
		return nil
	}
	f.there[id] = true
	f.members = append(f.members, &project.Member{
		UserID: id, Level: project.Level(row.AccessLevel), ExpiresAt: row.ExpiresAt, CreatedBy: &f.by.ID, CreatedAt: f.past(row.CreatedAt),
	})
	return nil
}

// board converts the row of a board. Lists and other things that do not exist here
// are left out and added to lost.
func (f *filling) board(ctx context.Context, tx *db.Tx, d *project.Draft, row *archive.BoardRow, lost *Report) (*board.Board, error) {
	b := &board.Board{
		Name: row.Name, HideBacklog: row.HideBacklog, HideClosed: row.HideClosed, Weight: row.Weight, LabelNames: row.Labels, CreatedAt: f.past(row.CreatedAt),
	}
	// resolve finds the label, milestone or user of a list or of the board.
	resolve := func(what string, label, milestone *archive.Reference, person *archive.PersonRow) (*board.List, error) {
		l := &board.List{}
		var name, why string
		var err error
		switch {
		case label != nil:
			name, why = "label "+label.Title, notThere
			l.LabelID, err = f.refer(ctx, tx, d, label, f.Plan.FindLabel)
		case milestone != nil:
			name, why = "milestone "+milestone.Title, notThere
			l.MilestoneID, err = f.refer(ctx, tx, d, milestone, f.Plan.FindMilestone)
		default:
			name, why = "assignee "+person.Username, f.unmappedReason(person)
			if id, ok, e := f.find(person); ok {
				l.AssigneeID = &id
			} else {
				err = e
			}
		}
		if err == nil && l.LabelID == nil && l.MilestoneID == nil && l.AssigneeID == nil {
			lost.add(Missing{boardThing, d.Path, fmt.Sprintf("%s, %s %s", cutName(row.Name), what, cutName(name)), why})
		}
		return l, err
	}
	if row.Milestone != nil {
		l, err := resolve("its", nil, row.Milestone, nil)
		if err != nil {
			return nil, err
		}
		b.MilestoneID = l.MilestoneID
	}
	if row.Assignee != nil {
		l, err := resolve("its", nil, nil, row.Assignee)
		if err != nil {
			return nil, err
		}
		b.AssigneeID = l.AssigneeID
	}
	for _, list := range row.Lists {
		if things(&list) != 1 {
			return nil, errs.Invalid("a list of the board %.100q is not of one label, milestone or assignee", row.Name)
		}
		l, err := resolve("the list of", list.Label, list.Milestone, list.Assignee)
		if err != nil {
			return nil, err
		}
		if l.LabelID != nil || l.MilestoneID != nil || l.AssigneeID != nil {
			b.Lists = append(b.Lists, l)
		}
	}
	return b, nil
}

// things counts the labels, milestones and users of a list.
func things(l *archive.ListRow) (n int) {
	for _, there := range []bool{l.Label != nil, l.Milestone != nil, l.Assignee != nil} {
		if there {
			n++
		}
	}
	return n
}

// refer finds the object of an archive.Reference: in the current group of the file
// or a group above it, or above all groups of the file. It is nil if there is none.
func (f *filling) refer(ctx context.Context, tx *db.Tx, d *project.Draft, r *archive.Reference,
	find func(ctx context.Context, q db.Q, groupID int64, name string, above bool) (int64, error)) (*int64, error) {
	place, above := f.i.ParentID, true
	if r.Group != 0 {
		if r.Group < 0 || r.Group > len(f.drafts) || f.drafts[r.Group-1] == nil || !isAbove(f.drafts[r.Group-1].Path, d.Path) {
			return nil, errs.Invalid("%.100q refers to group %d, which is not an ancestor", r.Title, r.Group)
		}
		place, above = &f.drafts[r.Group-1].ID, false
	}
	if place == nil {
		return nil, nil
	}
	id, err := find(ctx, tx, *place, r.Title, above)
	if err != nil || id == 0 {
		return nil, err
	}
	return &id, nil
}

// isAbove reports whether a group is another one or contains it, by their paths.
func isAbove(path, other string) bool {
	return path == "" || path == other || strings.HasPrefix(other, path+"/")
}
