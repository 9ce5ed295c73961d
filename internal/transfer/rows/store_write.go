package rows

import (
	"context"
	"errors"
	"time"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/transfer/archive"
)

// tablesOf are the tables that an import writes to, by the column of the project. What
// refers to their rows is deleted with them.
var tablesOf = []struct{ table, column string }{
	{"notes", "project_id"}, {"resource_events", "project_id"}, {"timelogs", "project_id"}, {"cross_references", "source_project_id"},
	{"commit_comments", "project_id"}, {"issues", "project_id"}, {"approval_rules", "project_id"}, {"merge_requests", "project_id"}, {"releases", "project_id"},
	{"snippets", "project_id"}, {"boards", "project_id"}, {"badges", "project_id"}, {"protected_refs", "project_id"}, {"pipeline_schedules", "project_id"},
	{"labels", "project_id"}, {"label_priorities", "project_id"}, {"milestones", "project_id"}, {"uploads", "project_id"}, {"members", "project_id"},
	{"push_rules", "project_id"}, {"project_counters", "project_id"}, {"lfs_project_objects", "project_id"},
}

// Tables returns the number of tables that Clear empties.
func Tables() int { return len(tablesOf) }

// Clear removes what an interrupted import has written of a draft to one of the
// tables.
func Clear(ctx context.Context, q db.Q, projectID int64, table int) error {
	t := tablesOf[table]
	_, err := q.ExecContext(ctx, `DELETE FROM `+t.table+` WHERE `+t.column+` = (SELECT p.id FROM projects p WHERE p.id = ? AND p.deleted_at IS NOT NULL)`, projectID)
	return err
}

// taken makes the violation of a unique index an error of the file.
func taken(err error, index, field string) error {
	if db.IsUnique(err, index) {
		return errs.InvalidField(field, "is that of another row")
	}
	return err
}

func insertUpload(ctx context.Context, tx *db.Tx, projectID int64, r *archive.UploadRow, author *int64, at time.Time) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO uploads (project_id, secret, name, size, author_id, created_at) VALUES (?, ?, ?, ?, ?, ?)`, projectID, r.Secret, r.Name, r.Size, author, at)
	return taken(err, "uploads_project_id_secret", "secret")
}

// UploadSize returns the size of a file that the draft has; -1 if it has none.
func UploadSize(ctx context.Context, q db.Q, projectID int64, secret string) (size int64, err error) {
	err = q.QueryRowContext(ctx, `SELECT size FROM uploads WHERE project_id = ? AND secret = ?`, projectID, secret).Scan(&size)
	if errors.Is(err, db.ErrNoRows) {
		return -1, nil
	}
	return size, err
}

func insertPriority(ctx context.Context, tx *db.Tx, projectID, labelID, priority int64) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO label_priorities (project_id, label_id, priority) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, projectID, labelID, priority)
	return err
}

// above selects the namespaces above one, and itself.
const above = `(SELECT t.ancestor_id FROM namespace_tree t WHERE t.descendant_id = ?)`

func findNamed(ctx context.Context, q db.Q, table, column string, projectID, namespaceID int64, name string) (id int64, err error) {
	err = q.QueryRowContext(ctx, `
		SELECT x.id FROM `+table+` x LEFT JOIN namespaces n ON n.id = x.namespace_id WHERE (x.project_id = ? OR x.namespace_id IN `+above+`) AND x.`+column+` = ?
		ORDER BY CASE WHEN x.project_id IS NULL THEN 1 ELSE 0 END, length(n.full_path) DESC LIMIT 1`, projectID, namespaceID, name).Scan(&id)
	if errors.Is(err, db.ErrNoRows) {
		return 0, nil
	}
	return id, err
}

func findLabel(ctx context.Context, q db.Q, projectID, namespaceID int64, name string) (int64, error) {
	return findNamed(ctx, q, "labels", "name", projectID, namespaceID, name)
}

func findMilestone(ctx context.Context, q db.Q, projectID, namespaceID int64, title string) (int64, error) {
	return findNamed(ctx, q, "milestones", "title", projectID, namespaceID, title)
}

// FindLabel returns the ID of a label of a draft or of a group above; 0 for none.
func (t *Target) FindLabel(ctx context.Context, q db.Q, name string) (int64, error) {
	return findLabel(ctx, q, t.Draft.ID, t.NamespaceID, name)
}

// FindMilestone is FindLabel for milestones.
func (t *Target) FindMilestone(ctx context.Context, q db.Q, title string) (int64, error) {
	return findMilestone(ctx, q, t.Draft.ID, t.NamespaceID, title)
}

func nextMilestone(ctx context.Context, q db.Q, projectID int64) (n int64, err error) {
	err = q.QueryRowContext(ctx, `SELECT COALESCE(max(iid), 0) + 1 FROM milestones WHERE project_id = ?`, projectID).Scan(&n)
	return n, err
}

// raiseNumber raises the counter of issues or merge requests to at least value.
func raiseNumber(ctx context.Context, q db.Q, projectID int64, kind plan.Kind, value int64) error {
	name := "issue"
	if kind == plan.MergeKind {
		name = "merge_request"
	}
	_, err := q.ExecContext(ctx, `
		INSERT INTO project_counters (project_id, kind, value) VALUES (?, ?, ?)
		ON CONFLICT (project_id, kind) DO UPDATE SET value = excluded.value WHERE project_counters.value < excluded.value`, projectID, name, value)
	return err
}

func tableOf(kind plan.Kind) string {
	if kind == plan.MergeKind {
		return "merge_request"
	}
	return "issue"
}

func findObject(ctx context.Context, q db.Q, kind plan.Kind, projectID, iid int64) (id int64, err error) {
	err = q.QueryRowContext(ctx, `SELECT id FROM `+tableOf(kind)+`s WHERE project_id = ? AND iid = ?`, projectID, iid).Scan(&id)
	if errors.Is(err, db.ErrNoRows) {
		return 0, nil
	}
	return id, err
}

func countComments(ctx context.Context, tx *db.Tx, on plan.Target, n int64) error {
	_, err := tx.ExecContext(ctx, `UPDATE `+tableOf(on.Kind)+`s SET notes = notes + ? WHERE id = ?`, n, on.ID)
	return err
}

func insertIssue(ctx context.Context, tx *db.Tx, r *archive.IssueRow, i *issuable) error {
	err := tx.QueryRowContext(ctx, `
		INSERT INTO issues (project_id, iid, state, confidential, author_id, milestone_id, created_at, updated_at, title, type, locked, due_date, weight, position,
			closed_at, closed_by_id, description, time_estimate, time_spent, upvotes, downvotes)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		i.projectID, r.IID, r.State, r.Confidential, i.author, i.milestone, i.created, i.updated, r.Title, r.Type, r.DiscussionLocked, db.NullText(r.DueDate), r.Weight, r.RelativePosition,
		i.closed, i.closedBy, r.Description, r.TimeEstimate, r.TimeSpent, i.up, i.down).Scan(&i.id)
	return taken(err, "issues_project_id_iid", "iid")
}

func insertMergeRequest(ctx context.Context, tx *db.Tx, r *archive.MergeRequestRow, i *issuable, merged *time.Time, mergedBy *int64, prepared *time.Time) error {
	source := &i.projectID
	if r.Fork {
		source = nil
	}
	err := tx.QueryRowContext(ctx, `
		INSERT INTO merge_requests (project_id, iid, state, draft, author_id, milestone_id, created_at, updated_at, source_project_id, source_branch, target_branch, title, head_sha,
			locked, squash, remove_source, allow_collaboration, merge_commit_sha, squash_commit_sha, merged_at, merged_by_id, closed_at, closed_by_id, prepared_at, description,
			time_estimate, time_spent, upvotes, downvotes)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		i.projectID, r.IID, r.State, r.Draft, i.author, i.milestone, i.created, i.updated, source, r.SourceBranch, r.TargetBranch, r.Title, r.SHA,
		r.DiscussionLocked, r.Squash, r.RemoveSourceBranch, r.AllowCollaboration, r.MergeCommitSHA, r.SquashCommitSHA, merged, mergedBy, i.closed, i.closedBy, prepared, r.Description,
		r.TimeEstimate, r.TimeSpent, i.up, i.down).Scan(&i.id)
	return taken(err, "merge_requests_project_id_iid", "iid")
}

// insertLink links an issue or merge request to a label or an assignee.
func insertLink(ctx context.Context, tx *db.Tx, on plan.Target, what string, id int64) error {
	table, column := tableOf(on.Kind), "label_id"
	if what == "assignee" {
		column = "user_id"
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO `+table+`_`+what+`s (`+table+`_id, `+column+`) VALUES (?, ?) ON CONFLICT DO NOTHING`, on.ID, id)
	return err
}

func insertTimelog(ctx context.Context, tx *db.Tx, on plan.Target, projectID int64, user *int64, r archive.TimelogRow, spent, made time.Time) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO timelogs (project_id, noteable_type, noteable_id, user_id, seconds, spent_at, summary, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		projectID, string(on.Kind), on.ID, user, r.Seconds, spent, r.Summary, made)
	return err
}

// award is a reaction of a user.
type award struct {
	name   string
	userID int64
	at     time.Time
}

func insertAwards(ctx context.Context, tx *db.Tx, on plan.Target, list []award) error {
	column := map[plan.Kind]string{plan.IssueKind: "issue_id", plan.MergeKind: "merge_request_id", plan.NoteKind: "note_id", snippetKind: "snippet_id"}[on.Kind]
	for _, a := range list {
		if _, err := tx.ExecContext(ctx, `INSERT INTO award_emoji (name, user_id, `+column+`, created_at, updated_at) VALUES (?, ?, ?, ?, ?)`, a.name, a.userID, on.ID, a.at, a.at); err != nil {
			return err
		}
	}
	return nil
}

func insertIssueLink(ctx context.Context, tx *db.Tx, from, to int64, kind string, made, changed time.Time) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO issue_links (source_id, target_id, kind, created_at, updated_at) VALUES (?, ?, ?, ?, ?)`, from, to, kind, made, changed)
	return taken(err, "issue_links_source_id_target_id", "target")
}

func insertReviewer(ctx context.Context, tx *db.Tx, id, user int64, state string, at time.Time) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO merge_request_reviewers (merge_request_id, user_id, state, created_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`, id, user, state, at)
	return err
}

func insertApproval(ctx context.Context, tx *db.Tx, id, user int64, sha string, at time.Time) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO approvals (merge_request_id, user_id, head_sha, created_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`, id, user, sha, at)
	return err
}

func insertChangeRequest(ctx context.Context, tx *db.Tx, id, user int64, bypassed bool, at time.Time) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO merge_request_change_requests (merge_request_id, user_id, created_at, bypassed) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`, id, user, at, bypassed)
	return err
}

func insertCommitter(ctx context.Context, tx *db.Tx, id, user int64) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO merge_request_committers (merge_request_id, user_id) VALUES (?, ?) ON CONFLICT DO NOTHING`, id, user)
	return err
}

func insertVersion(ctx context.Context, tx *db.Tx, id int64, v archive.VersionRow, author *int64, at time.Time) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO merge_request_versions (merge_request_id, head_sha, base_sha, start_sha, author_id, was_sha, files, collected, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, TRUE, ?)`,
		id, v.HeadSHA, v.BaseSHA, v.StartSHA, author, v.WasSHA, v.Files, at)
	return err
}

func insertCommit(ctx context.Context, tx *db.Tx, id int64, sha string) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO merge_request_commits (merge_request_id, sha) VALUES (?, ?) ON CONFLICT DO NOTHING`, id, sha)
	return err
}

func insertContextCommit(ctx context.Context, tx *db.Tx, id int64, sha string, at time.Time) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO merge_request_context_commits (merge_request_id, sha, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, id, sha, at)
	return err
}

func insertNamedIssue(ctx context.Context, tx *db.Tx, id, issue int64, closes bool) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO merge_request_issues (merge_request_id, issue_id, closes) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, id, issue, closes)
	return err
}

func insertBlock(ctx context.Context, tx *db.Tx, blocked, blocking int64, at time.Time) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO merge_request_blocks (blocked_id, blocking_id, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, blocked, blocking, at)
	return err
}

func insertRelease(ctx context.Context, tx *db.Tx, projectID int64, r *archive.ReleaseRow, author int64, made, changed, released time.Time) (id int64, err error) {
	err = tx.QueryRowContext(ctx, `
		INSERT INTO releases (project_id, tag, name, sha, author_id, created_at, updated_at, released_at, description) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		projectID, r.Tag, r.Name, r.SHA, author, made, changed, released, r.Description).Scan(&id)
	return id, taken(err, "releases_project_id_tag", "tag_name")
}

func insertReleaseMilestone(ctx context.Context, tx *db.Tx, id, milestone int64) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO release_milestones (release_id, milestone_id) VALUES (?, ?) ON CONFLICT DO NOTHING`, id, milestone)
	return err
}

func insertSnippet(ctx context.Context, tx *db.Tx, projectID int64, r *archive.SnippetRow, author int64, files string, made, changed time.Time) (id int64, err error) {
	err = tx.QueryRowContext(ctx, `
		INSERT INTO snippets (project_id, author_id, visibility, title, files, created_at, updated_at, description) VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		projectID, author, r.Visibility, r.Title, files, made, changed, r.Description).Scan(&id)
	return id, err
}

// DeleteSnippet removes a snippet of a draft.
func DeleteSnippet(ctx context.Context, q db.Q, id int64) error {
	_, err := q.ExecContext(ctx, `DELETE FROM snippets WHERE id = ?`, id)
	return err
}

// newNote is what the row of a note has in the database.
type newNote struct {
	projectID         int64
	on                plan.Target
	iid, author       int64
	position, current string
	resolvedBy        *int64
	created, updated  time.Time
	resolved          *time.Time
}

func insertNote(ctx context.Context, tx *db.Tx, r *archive.NoteRow, n *newNote) (id int64, err error) {
	err = tx.QueryRowContext(ctx, `
		INSERT INTO notes (project_id, noteable_type, noteable_id, noteable_iid, discussion_id, type, author_id, system, internal, position, current_position,
			resolved_at, resolved_by_id, created_at, updated_at, commit_sha, body)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		n.projectID, string(n.on.Kind), n.on.ID, n.iid, r.Discussion, r.Type, n.author, r.System, r.Internal, n.position, n.current,
		n.resolved, n.resolvedBy, n.created, n.updated, r.CommitSHA, r.Body).Scan(&id)
	return id, err
}

// isFull reports whether a discussion has as many notes as it may have.
func isFull(ctx context.Context, q db.Q, on plan.Target, discussion string) (bool, error) {
	return db.Exists(ctx, q, `SELECT 1 FROM notes WHERE noteable_type = ? AND noteable_id = ? AND discussion_id = ? LIMIT 1 OFFSET ?`,
		string(on.Kind), on.ID, discussion, maxThread-1)
}

func insertSuggestion(ctx context.Context, tx *db.Tx, note int64, number int, s archive.SuggestionRow, applied *time.Time) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO suggestions (note_id, number, from_line, to_line, from_content, to_content, commit_sha, applied_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		note, int64(number), s.FromLine, s.ToLine, s.FromContent, s.ToContent, s.CommitSHA, applied)
	return err
}

func insertCrossReference(ctx context.Context, tx *db.Tx, on plan.Target, projectID int64, from sourceOf, note int64) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO cross_references (target_type, target_id, source_type, source_project_id, source_id, source_sha, note_id) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		string(on.Kind), on.ID, string(from.kind), projectID, from.id, from.sha, note)
	return err
}

func insertComment(ctx context.Context, tx *db.Tx, projectID int64, r *archive.CommentRow, author int64, made, changed time.Time) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO commit_comments (project_id, sha, author_id, note, path, line, line_type, discussion_id, thread, old_path, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, projectID, r.SHA, author, r.Note, r.Path, r.Line, r.LineType, r.Discussion, r.Thread, r.OldPath, made, changed)
	return err
}

func insertEvent(ctx context.Context, tx *db.Tx, projectID int64, on plan.Target, r *archive.EventRow, user, label, milestone *int64, at time.Time) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO resource_events (kind, noteable_type, noteable_id, project_id, user_id, action, label_id, milestone_id, weight, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		r.Kind, string(on.Kind), on.ID, projectID, user, r.Action, label, milestone, r.Weight, at)
	return err
}

// insertSchedule inserts a schedule that is not active.
func insertSchedule(ctx context.Context, tx *db.Tx, projectID, owner int64, r *archive.ScheduleRow, made, changed time.Time) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO pipeline_schedules (project_id, owner_id, description, ref, cron, cron_timezone, active, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, FALSE, ?, ?)`,
		projectID, owner, r.Description, r.Ref, r.Cron, r.Timezone, made, changed)
	return err
}

func insertApprovalRule(ctx context.Context, tx *db.Tx, projectID int64, r *archive.ApprovalRuleRow, users []int64, at time.Time) error {
	var id int64
	err := tx.QueryRowContext(ctx, `INSERT INTO approval_rules (project_id, type, name, approvals_required, all_protected, created_at) VALUES (?, ?, ?, ?, ?, ?) RETURNING id`,
		projectID, r.RuleType, r.Name, r.ApprovalsRequired, r.AllProtected, at).Scan(&id)
	if err != nil {
		return taken(err, "approval_rules_project_id_name", "name")
	}
	for _, user := range users {
		if _, err := tx.ExecContext(ctx, `INSERT INTO approval_rule_users (approval_rule_id, user_id) VALUES (?, ?)`, id, user); err != nil {
			return err
		}
	}
	for _, name := range r.ProtectedBranches {
		_, err := tx.ExecContext(ctx, `
			INSERT INTO approval_rule_branches (approval_rule_id, protected_ref_id)
			SELECT CAST(? AS BIGINT), p.id FROM protected_refs p WHERE p.project_id = ? AND p.kind = 'branch' AND p.name = ? ON CONFLICT DO NOTHING`, id, projectID, name)
		if err != nil {
			return err
		}
	}
	return nil
}

// Draft returns the draft of a project.
func Draft(p *project.Project) *project.Draft { return &project.Draft{ID: p.ID, Project: true} }
