package hook

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"svc/internal/audit"
	"svc/internal/ci/deployment"
	"svc/internal/db"
	"svc/internal/featureflag"
	"svc/internal/plan"
	"svc/internal/release"
)

// findUsersByID returns users by their IDs.
func findUsersByID(ctx context.Context, q db.Q, ids []int64) (map[int64]*userRow, error) {
	found := map[int64]*userRow{}
	ids = slices.Clone(ids)
	slices.Sort(ids)
	if ids = slices.Compact(ids); len(ids) == 0 {
		return found, nil
	}
	list, err := db.All(ctx, q, func(s db.Scanner) (*userRow, error) {
		var p userRow
		err := s.Scan(&p.id, &p.username, &p.name, &p.avatar, &p.publicEmail, &p.email, &p.state, db.Time(&p.created), db.Time(&p.updated))
		return &p, err
	}, `SELECT id, username, name, avatar, public_email, email, state, created_at, updated_at FROM users WHERE id IN `+db.In(len(ids)), db.Any(ids)...)
	for _, p := range list {
		found[p.id] = p
	}
	return found, err
}

// snippetRow is a snippet as payloads show it.
type snippetRow struct {
	id, authorID                         int64
	title, description, visibility, file string
	created, updated                     time.Time
}

func findSnippet(ctx context.Context, q db.Q, id int64) (*snippetRow, error) {
	var r snippetRow
	var files string
	err := q.QueryRowContext(ctx, `SELECT id, author_id, title, description, visibility, files, created_at, updated_at FROM snippets WHERE id = ?`, id).
		Scan(&r.id, &r.authorID, &r.title, &r.description, &r.visibility, &files, db.Time(&r.created), db.Time(&r.updated))
	if err == nil {
		r.file = firstText(files)
	}
	return &r, db.NotFound(err, "Snippet")
}

// firstText is the first text of a JSON list.
func firstText(list string) string {
	var texts []string
	if json.Unmarshal([]byte(list), &texts) != nil || len(texts) == 0 {
		return ""
	}
	return texts[0]
}

const jobColumns = `j.id, j.project_id, j.pipeline_id, j.name, j.stage, j.status, j.run_when, j.ref, j.failure_reason, j.tag, j.allow_failure, j.attempt, j.user_id,
	j.options, j.created_at, j.queued_at, j.started_at, j.finished_at, r.id, COALESCE(r.description, ''), COALESCE(r.tags, ''), COALESCE(r.kind, ''), COALESCE(r.paused, FALSE),
	COALESCE(a.filename, ''), a.size, COALESCE(n.tier, '')`

const jobTables = `jobs j LEFT JOIN runners r ON r.id = j.runner_id LEFT JOIN job_artifacts a ON a.job_id = j.id AND a.kind = 'archive'
	LEFT JOIN environments n ON n.id = j.environment_id`

func scanJob(s db.Scanner) (*jobRow, error) {
	var j jobRow
	err := s.Scan(&j.id, &j.projectID, &j.pipelineID, &j.name, &j.stage, &j.status, &j.when, &j.ref, &j.failure, &j.tag, &j.allowFailure, &j.attempts, &j.userID,
		&j.options, db.Time(&j.created), db.NullTime(&j.queued), db.NullTime(&j.started), db.NullTime(&j.finished), &j.runnerID, &j.runnerText, &j.tags, &j.runnerKind,
		&j.runnerPaused, &j.archive, &j.size, &j.environmentTier)
	return &j, err
}

// maxJobs is how many jobs a pipeline event has.
const maxJobs = 1000

func findJobs(ctx context.Context, q db.Q, pipelineID int64) ([]*jobRow, error) {
	return db.All(ctx, q, scanJob, `SELECT `+jobColumns+` FROM `+jobTables+` WHERE j.pipeline_id = ? AND NOT j.retried ORDER BY j.id DESC LIMIT ?`, pipelineID, maxJobs)
}

// pipelineRow is a pipeline as job events show it.
type pipelineRow struct {
	sha, before, name, status string
	parent, parentJob         *int64
	started, finished         *time.Time
}

func (p *pipelineRow) duration() any {
	if p.started == nil || p.finished == nil {
		return nil
	}
	return int64(p.finished.Sub(*p.started).Seconds())
}

func findJob(ctx context.Context, q db.Q, id int64) (*jobRow, *pipelineRow, error) {
	j, err := scanJob(q.QueryRowContext(ctx, `SELECT `+jobColumns+` FROM `+jobTables+` WHERE j.id = ?`, id))
	if err != nil {
		return nil, nil, db.NotFound(err, "Job")
	}
	var p pipelineRow
	err = q.QueryRowContext(ctx, `SELECT sha, before_sha, name, status, parent_id, parent_job_id, started_at, finished_at FROM pipelines WHERE id = ?`, j.pipelineID).
		Scan(&p.sha, &p.before, &p.name, &p.status, &p.parent, &p.parentJob, db.NullTime(&p.started), db.NullTime(&p.finished))
	return j, &p, db.NotFound(err, "Pipeline")
}

func findPipelineProject(ctx context.Context, q db.Q, id int64) (projectID int64, path string, err error) {
	err = q.QueryRowContext(ctx, `SELECT p.id, p.full_path FROM pipelines x JOIN projects p ON p.id = x.project_id WHERE x.id = ?`, id).Scan(&projectID, &path)
	if errors.Is(err, db.ErrNoRows) {
		return 0, "", nil
	}
	return projectID, path, err
}

// findHeadPipeline returns the newest pipeline of a commit; nil if there is none.
func findHeadPipeline(ctx context.Context, q db.Q, projectID int64, sha string) (*int64, error) {
	var id int64
	err := q.QueryRowContext(ctx, `SELECT id FROM pipelines WHERE project_id = ? AND sha = ? ORDER BY id DESC LIMIT 1`, projectID, sha).Scan(&id)
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	return &id, err
}

// requestRow is the merge request of a pipeline.
type requestRow struct {
	id, iid, project             int64
	title, source, target, state string
	sourceProject                *int64
}

// findRequest returns a merge request by its number; nil if it does not exist.
func findRequest(ctx context.Context, q db.Q, projectID, iid int64) (*requestRow, error) {
	var r requestRow
	err := q.QueryRowContext(ctx, `
		SELECT m.id, m.iid, m.project_id, m.title, m.source_branch, m.target_branch, m.state, m.source_project_id
		FROM merge_requests m WHERE m.project_id = ? AND m.iid = ?`, projectID, iid).Scan(&r.id, &r.iid, &r.project, &r.title, &r.source, &r.target, &r.state, &r.sourceProject)
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	return &r, err
}

// deploymentRow is a deployment as payloads show it.
type deploymentRow struct {
	id, projectID                                  int64
	jobID, userID                                  *int64
	status, ref, sha, environment, slug, tier, url string
	updated                                        time.Time
}

// findDeployment returns the deployment of a change; nil if it does not exist.
func findDeployment(ctx context.Context, q db.Q, c deployment.StatusChange) (*deploymentRow, error) {
	column, id := "d.id", c.ID
	if c.ID == 0 {
		column, id = "d.job_id", c.JobID
	}
	var d deploymentRow
	err := q.QueryRowContext(ctx, `
		SELECT d.id, d.project_id, d.job_id, d.user_id, d.status, d.ref, d.sha, d.updated_at, e.name, e.slug, e.tier, e.external_url
		FROM deployments d JOIN environments e ON e.id = d.environment_id WHERE `+column+` = ?`, id).
		Scan(&d.id, &d.projectID, &d.jobID, &d.userID, &d.status, &d.ref, &d.sha, db.Time(&d.updated), &d.environment, &d.slug, &d.tier, &d.url)
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	return &d, err
}

func findProjectRow(ctx context.Context, q db.Q, id int64) (*projectRow, error) {
	var p projectRow
	err := q.QueryRowContext(ctx, `SELECT id, namespace_id, name, full_path, visibility, created_at, updated_at FROM projects WHERE id = ?`, id).
		Scan(&p.id, &p.namespaceID, &p.name, &p.path, &p.visibility, db.Time(&p.created), db.Time(&p.updated))
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	return &p, err
}

func findGroupRow(ctx context.Context, q db.Q, id int64) (*groupRow, error) {
	var g groupRow
	err := q.QueryRowContext(ctx, `SELECT id, parent_id, name, full_path, created_at, updated_at FROM namespaces WHERE id = ?`, id).
		Scan(&g.id, &g.parentID, &g.name, &g.path, db.Time(&g.created), db.Time(&g.updated))
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	return &g, err
}

// findMembership returns a direct membership; nil if it was removed.
func findMembership(ctx context.Context, q db.Q, in audit.Entity, userID int64) (*memberRow, error) {
	column := "namespace_id"
	if in.Type == audit.ProjectEntity {
		column = "project_id"
	}
	var m memberRow
	err := q.QueryRowContext(ctx, `SELECT created_at, COALESCE(expires_at, '') FROM members WHERE `+column+` = ? AND user_id = ? ORDER BY id LIMIT 1`, in.ID, userID).
		Scan(db.Time(&m.created), &m.expires)
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	return &m, err
}

// findOwners returns the direct owners of a project, or of its namespace if it has
// none.
func findOwners(ctx context.Context, q db.Q, projectID, namespaceID int64) ([]*userRow, error) {
	const most = 20
	ids, err := db.All(ctx, q, db.Value[int64], `
		SELECT user_id FROM (
			SELECT m.id, m.user_id FROM members m WHERE m.project_id = ? AND m.access_level = 50
			UNION ALL SELECT m.id, m.user_id FROM members m WHERE m.namespace_id = ? AND m.access_level = 50
			UNION ALL SELECT 0, n.user_id FROM namespaces n WHERE n.id = ? AND n.user_id IS NOT NULL) AS owners ORDER BY id LIMIT ?`, projectID, namespaceID, namespaceID, most)
	if err != nil {
		return nil, err
	}
	found, err := findUsersByID(ctx, q, ids)
	var list []*userRow
	for _, id := range ids {
		if p := found[id]; p != nil {
			list = append(list, p)
			delete(found, id)
		}
	}
	return list, err
}

// findKey returns the text of an SSH key.
func findKey(ctx context.Context, q db.Q, id int64) (text string, err error) {
	err = q.QueryRowContext(ctx, `SELECT key FROM ssh_keys WHERE id = ?`, id).Scan(&text)
	if errors.Is(err, db.ErrNoRows) {
		return "", nil
	}
	return text, err
}

// findExpiring returns the active access tokens of projects and groups that expire
// on a day.
func findExpiring(ctx context.Context, q db.Q, day string) ([]*tokenRow, error) {
	return db.All(ctx, q, func(s db.Scanner) (*tokenRow, error) {
		var t tokenRow
		err := s.Scan(&t.id, &t.userID, &t.name, &t.expires, db.Time(&t.created), &t.projectID, &t.groupID)
		return &t, err
	}, `
		SELECT t.id, t.user_id, t.name, t.expires_at, t.created_at, m.project_id, m.namespace_id
		FROM access_tokens t JOIN users u ON u.id = t.user_id JOIN members m ON m.user_id = u.id
		WHERE t.expires_at = ? AND t.revoked_at IS NULL AND u.kind IN ('project_bot', 'group_bot') ORDER BY t.id`, day)
}

// newestRows are the queries of newestIn. Each reads an index in its order.
var newestRows = map[string]string{
	"issues":         `SELECT id FROM issues WHERE project_id = ? ORDER BY iid DESC LIMIT 1`,
	"public issues":  `SELECT id FROM issues WHERE project_id = ? AND NOT confidential ORDER BY iid DESC LIMIT 1`,
	"merge_requests": `SELECT id FROM merge_requests WHERE project_id = ? ORDER BY iid DESC LIMIT 1`,
	"jobs":           `SELECT id FROM jobs WHERE project_id = ? AND bridge = FALSE ORDER BY id DESC LIMIT 1`,
	"pipelines":      `SELECT id FROM pipelines WHERE project_id = ? ORDER BY id DESC LIMIT 1`,
	"deployments":    `SELECT id FROM deployments WHERE project_id = ? ORDER BY id DESC LIMIT 1`,
}

// newestIn returns the ID of the newest of some rows of a project. NotFound.
func newestIn(ctx context.Context, q db.Q, rows string, projectID int64) (id int64, err error) {
	err = q.QueryRowContext(ctx, newestRows[rows], projectID).Scan(&id)
	return id, db.NotFound(err, "")
}

func newestFlag(ctx context.Context, q db.Q, projectID int64) (*featureflag.Flag, error) {
	var f featureflag.Flag
	err := q.QueryRowContext(ctx, `SELECT id, name, description, active FROM feature_flags WHERE project_id = ? ORDER BY iid DESC LIMIT 1`, projectID).
		Scan(&f.ID, &f.Name, &f.Description, &f.Active)
	return &f, db.NotFound(err, "")
}

// newestProject returns the newest project of a group and the groups below it, or of
// the instance; 0 if there is none. In a group, projects without commits come last.
func newestProject(ctx context.Context, q db.Q, groupID int64) (id int64, err error) {
	query, args := `SELECT id FROM projects WHERE deleted_at IS NULL ORDER BY id DESC LIMIT 1`, []any{}
	if groupID != 0 {
		query, args = `SELECT p.id FROM projects p JOIN namespace_tree a ON a.descendant_id = p.namespace_id
			WHERE a.ancestor_id = ? AND p.deleted_at IS NULL ORDER BY p.default_branch <> '' DESC, p.id DESC LIMIT 1`, []any{groupID}
	}
	err = q.QueryRowContext(ctx, query, args...).Scan(&id)
	if errors.Is(err, db.ErrNoRows) {
		return 0, nil
	}
	return id, err
}

// noteKey names a note and its target.
type noteKey struct {
	id int64
	on plan.Target
}

// newestNote returns the newest comment that all members see. NotFound.
func newestNote(ctx context.Context, q db.Q, projectID int64) (noteKey, error) {
	var n noteKey
	err := q.QueryRowContext(ctx, `
		SELECT n.id, n.noteable_type, n.noteable_id FROM notes n WHERE n.project_id = ? AND n.system = '' AND NOT n.internal
			AND NOT EXISTS (SELECT 1 FROM issues i WHERE n.noteable_type = 'Issue' AND i.id = n.noteable_id AND i.confidential)
		ORDER BY n.id DESC LIMIT 1`, projectID).Scan(&n.id, (*string)(&n.on.Kind), &n.on.ID)
	return n, db.NotFound(err, "Note")
}

func newestMilestone(ctx context.Context, q db.Q, projectID int64) (object, error) {
	var id, iid int64
	var title, description, state string
	var start, due *string
	var created, updated time.Time
	err := q.QueryRowContext(ctx, `
		SELECT id, iid, title, description, state, start_date, due_date, created_at, updated_at FROM milestones WHERE project_id = ? ORDER BY iid DESC LIMIT 1`, projectID).
		Scan(&id, &iid, &title, &description, &state, &start, &due, db.Time(&created), db.Time(&updated))
	return object{
		"id": id, "iid": iid, "title": title, "description": orNull(description), "state": state, "start_date": start, "due_date": due, "created_at": zone(created),
		"updated_at": zone(updated), "group_id": nil, "project_id": projectID,
	}, db.NotFound(err, "Milestone")
}

// findReleaseLinks returns the asset links of a release.
func findReleaseLinks(ctx context.Context, q db.Q, releaseID int64) ([]any, error) {
	return db.All(ctx, q, func(s db.Scanner) (any, error) {
		var id int64
		var name, url, kind string
		err := s.Scan(&id, &name, &url, &kind)
		return object{"id": id, "external": true, "link_type": kind, "name": name, "url": url}, err
	}, `SELECT id, name, url, link_type FROM release_links WHERE release_id = ? ORDER BY id DESC LIMIT 100`, releaseID)
}

func newestRelease(ctx context.Context, q db.Q, projectID int64) (*release.Release, error) {
	var r release.Release
	err := q.QueryRowContext(ctx, `SELECT id, tag, name, description, sha, created_at, released_at FROM releases WHERE project_id = ? ORDER BY created_at DESC, id DESC LIMIT 1`, projectID).
		Scan(&r.ID, &r.Tag, &r.Name, &r.Description, &r.SHA, db.Time(&r.CreatedAt), db.Time(&r.ReleasedAt))
	return &r, db.NotFound(err, "Release")
}
