package rows

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"svc/internal/ci/schedule"
	"svc/internal/db"
	"svc/internal/emoji"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/merge"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/release"
	"svc/internal/repo"
	"svc/internal/transfer/archive"
	"svc/internal/upload"
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

	// Lost counts what could not be taken over, by kind.
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

// The kinds of what may be lost.
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

// maxNumber is the highest number of an issue or merge request. It leaves room for new
// ones.
const maxNumber = 1 << 40

var (
	hexID    = regexp.MustCompile(`^[0-9a-f]{1,64}$`)
	eventKey = regexp.MustCompile(`^[a-z_]{0,50}$`)
)

// checkSHA refuses what is not the ID of a commit; it may be empty.
func checkSHA(wrong errs.Fields, name string, list ...string) {
	for _, sha := range list {
		if id, ok := git.ParseOID(sha); sha != "" && (!ok || string(id) != sha) {
			wrong.Set(name, "is not the ID of a commit")
		}
	}
}

func among(wrong errs.Fields, name, value string, values ...string) {
	if !slices.Contains(values, value) {
		wrong.Set(name, "is not included in the list")
	}
}

func short(wrong errs.Fields, name, value string, most int) {
	if utf8.RuneCountInString(value) > most {
		wrong.Set(name, "is too long (maximum is %d characters)", most)
	}
}

func filled(wrong errs.Fields, name, value string, most int) {
	if strings.TrimSpace(value) == "" {
		wrong.Set(name, "can't be blank")
	}
	short(wrong, name, value, most)
}

func text(wrong errs.Fields, name, value string) {
	if len(value) > plan.MaxText {
		wrong.Set(name, "is too long (maximum is %d bytes)", plan.MaxText)
	}
}

func day(wrong errs.Fields, name, value string) {
	if _, err := time.Parse(time.DateOnly, value); err != nil && value != "" {
		wrong.Set(name, "is not a day")
	}
}

// inRange refuses numbers that no row has.
func inRange(wrong errs.Fields, name string, n, least, most int64) {
	if n < least || n > most {
		wrong.Set(name, "is invalid")
	}
}

func (t *Target) putUpload(ctx context.Context, tx *db.Tx, r *archive.UploadRow) error {
	wrong := errs.Fields{}
	if b, err := hex.DecodeString(r.Secret); err != nil || len(b) != 16 || r.Secret != strings.ToLower(r.Secret) {
		wrong.Set("secret", "is invalid")
	}
	filled(wrong, "name", r.Name, 255)
	if strings.ContainsAny(r.Name, "/\\\r\n") || r.Name == "." || r.Name == ".." {
		wrong.Set("name", "is invalid")
	}
	inRange(wrong, "size", r.Size, 0, upload.MaxSize)
	if err := wrong.Err(); err != nil {
		return err
	}
	author, err := t.find(r.Author)
	if err != nil {
		return err
	}
	return insertUpload(ctx, tx, t.Draft.ID, r, author, t.past(r.CreatedAt))
}

// putLabel writes a label, unless a group above has one with the name, which is used
// instead.
func (t *Target) putLabel(ctx context.Context, tx *db.Tx, r *archive.ProjectLabelRow) error {
	id, err := t.Plan.FindLabel(ctx, tx, t.NamespaceID, r.Name, true)
	if err != nil {
		return err
	}
	if id == 0 {
		l := &plan.Label{Name: r.Name, Color: r.Color, Description: r.Description, CreatedAt: t.past(r.CreatedAt), UpdatedAt: t.past(r.UpdatedAt)}
		if err := t.Plan.PutLabels(ctx, tx, t.Draft, []*plan.Label{l}); err != nil {
			return err
		}
		id = l.ID
	}
	if r.Priority == nil {
		return nil
	}
	wrong := errs.Fields{}
	inRange(wrong, "priority", *r.Priority, 0, 1<<31)
	if err := wrong.Err(); err != nil {
		return err
	}
	return insertPriority(ctx, tx, t.Draft.ID, id, *r.Priority)
}

// putMilestone writes a milestone. One of a group is used where the groups above have
// one with the title, and becomes one of the project elsewhere.
func (t *Target) putMilestone(ctx context.Context, tx *db.Tx, r *archive.ProjectMilestoneRow) error {
	m := &plan.Milestone{
		IID: r.IID, Title: r.Title, Description: r.Description, State: plan.MilestoneState(r.State), StartDate: r.StartDate, DueDate: r.DueDate,
		CreatedAt: t.past(r.CreatedAt), UpdatedAt: t.past(r.UpdatedAt),
	}
	if r.Inherited {
		id, err := t.Plan.FindMilestone(ctx, tx, t.NamespaceID, r.Title, true)
		if err != nil || id != 0 {
			return err
		}
		if there, err := findMilestone(ctx, tx, t.Draft.ID, t.NamespaceID, r.Title); err != nil || there != 0 {
			return err
		}
		if m.IID, err = nextMilestone(ctx, tx, t.Draft.ID); err != nil {
			return err
		}
	}
	return t.Plan.PutMilestones(ctx, tx, t.Draft, []*plan.Milestone{m})
}

// label returns the ID of a label of the project or of a group above; 0 if there is
// none.
func (t *Target) label(ctx context.Context, tx *db.Tx, name string) (int64, error) {
	return remember(t.labels, name, func() (int64, error) { return findLabel(ctx, tx, t.Draft.ID, t.NamespaceID, name) })
}

// milestone returns the ID of a milestone by its title; nil if there is none.
func (t *Target) milestone(ctx context.Context, tx *db.Tx, title string) (*int64, error) {
	if title == "" {
		return nil, nil
	}
	id, err := remember(t.milestones, title, func() (int64, error) { return findMilestone(ctx, tx, t.Draft.ID, t.NamespaceID, title) })
	if err != nil || id == 0 {
		t.lost["milestone"]++
		return nil, err
	}
	return &id, nil
}

func remember(known map[string]int64, name string, find func() (int64, error)) (int64, error) {
	if id, ok := known[name]; ok {
		return id, nil
	}
	id, err := find()
	if err == nil {
		known[name] = id
	}
	return id, err
}

func (t *Target) putProtected(ctx context.Context, tx *db.Tx, r *archive.ProtectedRow) error {
	p := &repo.Protected{
		ProjectID: t.Draft.ID, Kind: repo.RefKind(r.Kind), Name: r.Name, AllowForcePush: r.AllowForcePush, CodeOwnerApproval: r.CodeOwnerApproval, CreatedAt: t.past(r.CreatedAt),
	}
	for _, a := range r.Access {
		entry := repo.RefAccess{Action: repo.RefAction(a.Action), Level: project.Level(a.AccessLevel)}
		if a.User != 0 {
			user, err := t.need(a.User)
			if err != nil {
				return err
			}
			if user == nil {
				continue
			}
			entry.UserID, entry.Level = user, project.Maintainer
		}
		p.Access = append(p.Access, entry)
	}
	// A rule must not become wider: an action that only unknown users may do is for no
	// one. An action without entries would be for Maintainers.
	for _, a := range r.Access {
		action := repo.RefAction(a.Action)
		if action != repo.Unprotect && !slices.ContainsFunc(p.Access, func(e repo.RefAccess) bool { return e.Action == action }) {
			p.Access = append(p.Access, repo.RefAccess{Action: action, Level: project.NoAccess})
		}
	}
	return repo.PutProtected(ctx, tx, p)
}

// issuable checks what issues and merge requests share.
func (t *Target) issuable(wrong errs.Fields, i *archive.IssuableRow, states ...string) {
	inRange(wrong, "iid", i.IID, 1, maxNumber)
	filled(wrong, "title", i.Title, plan.MaxTitle)
	text(wrong, "description", i.Description)
	among(wrong, "state", i.State, states...)
	inRange(wrong, "time_estimate", i.TimeEstimate, 0, 1<<40)
	inRange(wrong, "total_time_spent", i.TimeSpent, 0, 1<<40)
	for _, l := range i.Timelogs {
		inRange(wrong, "timelogs", l.Seconds, -1<<40, 1<<40)
		short(wrong, "timelogs", l.Summary, 255)
	}
	if (i.ClosedAt != nil) != (i.State == "closed") {
		if i.State == "closed" {
			i.ClosedAt = &i.UpdatedAt
		} else {
			i.ClosedAt = nil
		}
	}
}

// reactions checks reactions, and counts those up and down. Unknown ones are lost.
func (t *Target) reactions(list []archive.AwardRow) (rest []award, up, down int64, err error) {
	for _, a := range list {
		user, err := t.need(a.User)
		if err != nil {
			return nil, 0, 0, err
		}
		if user == nil {
			continue
		}
		if emoji.Find(a.Name) == nil {
			t.lost["award_emoji"]++
			continue
		}
		if slices.ContainsFunc(rest, func(b award) bool { return b.name == a.Name && b.userID == *user }) {
			continue
		}
		switch a.Name {
		case "thumbsup":
			up++
		case "thumbsdown":
			down++
		}
		rest = append(rest, award{a.Name, *user, t.past(a.CreatedAt)})
	}
	return rest, up, down, nil
}

func (t *Target) putIssue(ctx context.Context, tx *db.Tx, r *archive.IssueRow) error {
	wrong := errs.Fields{}
	t.issuable(wrong, &r.IssuableRow, "opened", "closed")
	among(wrong, "type", r.Type, "issue", "incident", "task", "test_case")
	day(wrong, "due_date", r.DueDate)
	if r.Weight != nil {
		inRange(wrong, "weight", *r.Weight, 0, 1<<31)
	}
	if err := wrong.Err(); err != nil {
		return err
	}
	return t.putIssuable(ctx, tx, plan.IssueKind, &r.IssuableRow, func(i *issuable) error { return insertIssue(ctx, tx, r, i) })
}

// issuable is what the rows of issues and merge requests have in the database.
type issuable struct {
	id, projectID       int64
	author              int64
	closedBy, milestone *int64
	up, down            int64
	created, updated    time.Time
	closed              *time.Time
}

// putIssuable writes an issue or merge request, and what it has in other tables.
func (t *Target) putIssuable(ctx context.Context, tx *db.Tx, kind plan.Kind, r *archive.IssuableRow, insert func(*issuable) error) error {
	i := &issuable{projectID: t.Draft.ID, created: t.past(r.CreatedAt), updated: t.past(r.UpdatedAt), closed: t.pastOrNull(r.ClosedAt)}
	var err error
	if i.author, err = t.signed(r.Author, i.created, &r.Description); err != nil {
		return err
	}
	if i.closedBy, err = t.find(r.ClosedBy); err != nil {
		return err
	}
	if i.milestone, err = t.milestone(ctx, tx, r.Milestone); err != nil {
		return err
	}
	awards, up, down, err := t.reactions(r.AwardEmoji)
	if err != nil {
		return err
	}
	i.up, i.down = up, down
	if err := insert(i); err != nil {
		return err
	}
	if err := raiseNumber(ctx, tx, t.Draft.ID, kind, r.IID); err != nil {
		return err
	}
	on := plan.Target{Kind: kind, ID: i.id}
	if err := insertAwards(ctx, tx, on, awards); err != nil {
		return err
	}
	for _, name := range r.Labels {
		id, err := t.label(ctx, tx, name)
		if err != nil {
			return err
		}
		if id == 0 {
			t.lost[lostLabel]++
			continue
		}
		if err := insertLink(ctx, tx, on, "label", id); err != nil {
			return err
		}
	}
	for _, p := range r.Assignees {
		user, err := t.need(p)
		if err != nil {
			return err
		}
		if user == nil {
			continue
		}
		if err := insertLink(ctx, tx, on, "assignee", *user); err != nil {
			return err
		}
	}
	for _, l := range r.Timelogs {
		user, err := t.find(l.User)
		if err != nil {
			return err
		}
		if err := insertTimelog(ctx, tx, on, t.Draft.ID, user, l, t.past(l.SpentAt), t.past(l.CreatedAt)); err != nil {
			return err
		}
	}
	return nil
}

// objectID returns the ID of an issue or merge request of the draft; 0 if there is
// none.
func (t *Target) objectID(ctx context.Context, tx *db.Tx, kind plan.Kind, iid int64) (int64, error) {
	return findObject(ctx, tx, kind, t.Draft.ID, iid)
}

func (t *Target) putIssueLink(ctx context.Context, tx *db.Tx, r *archive.IssueLinkRow) error {
	wrong := errs.Fields{}
	among(wrong, "link_type", r.LinkType, "relates_to", "blocks")
	if err := wrong.Err(); err != nil {
		return err
	}
	from, err := t.objectID(ctx, tx, plan.IssueKind, r.Source)
	if err != nil {
		return err
	}
	to, err := t.objectID(ctx, tx, plan.IssueKind, r.Target)
	if err != nil {
		return err
	}
	if from == 0 || to == 0 || from == to {
		t.lost[lostRow]++
		return nil
	}
	return insertIssueLink(ctx, tx, from, to, r.LinkType, t.past(r.CreatedAt), t.past(r.UpdatedAt))
}

func (t *Target) putRelease(ctx context.Context, tx *db.Tx, r *archive.ReleaseRow) error {
	wrong := errs.Fields{}
	filled(wrong, "tag_name", r.Tag, 255)
	if git.CheckRef(git.Tags+r.Tag) != nil {
		wrong.Set("tag_name", "is invalid")
	}
	short(wrong, "name", r.Name, release.MaxName)
	text(wrong, "description", r.Description)
	checkSHA(wrong, "sha", r.SHA)
	if len(r.Links) > release.MaxLinks {
		wrong.Set("links", "are too many")
	}
	if err := wrong.Err(); err != nil {
		return err
	}
	author, err := t.orGhost(r.Author)
	if err != nil {
		return err
	}
	// A release may be planned: this one time can be in the future.
	released := r.ReleasedAt.UTC().Truncate(time.Microsecond)
	if released.Year() < 1970 || released.Year() > 9999 {
		released = t.Now
	}
	id, err := insertRelease(ctx, tx, t.Draft.ID, r, author, t.past(r.CreatedAt), t.past(r.UpdatedAt), released)
	if err != nil {
		return err
	}
	for _, l := range r.Links {
		link := release.Link{ReleaseID: id, Name: l.Name, URL: l.URL, Type: l.LinkType, CreatedAt: t.past(l.CreatedAt)}
		if l.Filepath != nil {
			link.Path = *l.Filepath
		}
		if err := release.PutLink(ctx, tx, &link); err != nil {
			return err
		}
	}
	for _, title := range r.Milestones {
		m, err := t.milestone(ctx, tx, title)
		if err != nil {
			return err
		}
		if m == nil {
			continue
		}
		if err := insertReleaseMilestone(ctx, tx, id, *m); err != nil {
			return err
		}
	}
	return nil
}

func (t *Target) putSnippet(ctx context.Context, tx *db.Tx, r *archive.SnippetRow) error {
	wrong := errs.Fields{}
	filled(wrong, "title", r.Title, 255)
	text(wrong, "description", r.Description)
	among(wrong, "visibility", r.Visibility, string(project.Private), string(project.Internal), string(project.Public))
	if len(r.Files) == 0 || len(r.Files) > 1000 {
		wrong.Set("files", "are none or too many")
	}
	for _, name := range r.Files {
		filled(wrong, "files", name, 1024)
	}
	if err := wrong.Err(); err != nil {
		return err
	}
	author, err := t.signed(r.Author, t.past(r.CreatedAt), &r.Description)
	if err != nil {
		return err
	}
	files, err := json.Marshal(r.Files)
	if err != nil {
		return err
	}
	id, err := insertSnippet(ctx, tx, t.Draft.ID, r, author, string(files), t.past(r.CreatedAt), t.past(r.UpdatedAt))
	if err != nil {
		return err
	}
	t.made = append(t.made, id)
	awards, _, _, err := t.reactions(r.AwardEmoji)
	if err != nil {
		return err
	}
	return insertAwards(ctx, tx, plan.Target{Kind: snippetKind, ID: id}, awards)
}

const snippetKind plan.Kind = "Snippet"

func (t *Target) putSchedule(ctx context.Context, tx *db.Tx, r *archive.ScheduleRow) error {
	if err := schedule.CheckRule(r.Description, r.Cron, r.Timezone); err != nil {
		return err
	}
	wrong := errs.Fields{}
	filled(wrong, "description", r.Description, 255)
	filled(wrong, "ref", r.Ref, 1024)
	if err := wrong.Err(); err != nil {
		return err
	}
	return insertSchedule(ctx, tx, t.Draft.ID, t.ByID, r, t.past(r.CreatedAt), t.past(r.UpdatedAt))
}

func (t *Target) putApprovalRule(ctx context.Context, tx *db.Tx, r *archive.ApprovalRuleRow) error {
	wrong := errs.Fields{}
	filled(wrong, "name", r.Name, 1024)
	among(wrong, "rule_type", r.RuleType, string(merge.AnyApprover), "regular")
	inRange(wrong, "approvals_required", r.ApprovalsRequired, 0, project.MaxApprovals)
	if err := wrong.Err(); err != nil {
		return err
	}
	var users []int64
	for _, p := range r.Users {
		user, err := t.need(p)
		if err != nil {
			return err
		}
		if user != nil && !slices.Contains(users, *user) {
			users = append(users, *user)
		}
	}
	if r.RuleType == "regular" && len(users) == 0 {
		t.lost["approval_rule"]++ // no one could approve
		return nil
	}
	return insertApprovalRule(ctx, tx, t.Draft.ID, r, users, t.past(r.CreatedAt))
}
