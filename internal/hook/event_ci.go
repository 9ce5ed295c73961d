package hook

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"svc/internal/ci"
	"svc/internal/ci/deployment"
	"svc/internal/db"
	"svc/internal/git"
	"svc/internal/project"
)

// PipelineChanged sends pipeline events.
func (s *Service) PipelineChanged(ctx context.Context, tx *db.Tx, p *ci.Pipeline) error {
	list, err := s.listening(ctx, tx, p.ProjectID)
	if err != nil || !wants(list, Pipelines) {
		return err
	}
	o, err := s.pipelineEvent(ctx, tx, p)
	if err != nil {
		return fmt.Errorf("hooks of pipeline %d: %w", p.ID, err)
	}
	return s.emit(ctx, tx, list, o)
}

func (s *Service) pipelineEvent(ctx context.Context, q db.Q, p *ci.Pipeline) (occurrence, error) {
	in, err := project.In(ctx, q, p.ProjectID)
	if err != nil {
		return occurrence{}, err
	}
	jobs, err := findJobs(ctx, q, p.ID)
	if err != nil {
		return occurrence{}, err
	}
	ids := []int64{}
	if p.UserID != nil {
		ids = append(ids, *p.UserID)
	}
	for _, j := range jobs {
		if j.userID != nil {
			ids = append(ids, *j.userID)
		}
	}
	users, err := findUsersByID(ctx, q, ids)
	if err != nil {
		return occurrence{}, err
	}
	builds := []any{}
	for _, j := range jobs {
		builds = append(builds, s.buildObject(j, users))
	}
	var user any
	if p.UserID != nil {
		user = s.userObject(users[*p.UserID])
	}
	attributes := object{
		"id": p.ID, "iid": p.IID, "name": orNull(p.Name), "ref": shortRef(p.Ref), "tag": p.Tag, "sha": p.SHA, "before_sha": p.BeforeSHA, "source": string(p.Source),
		"status": string(p.Status), "detailed_status": detailed(string(p.Status)), "stages": p.Stages, "created_at": zone(p.CreatedAt),
		"finished_at": zoneOrNull(p.FinishedAt), "duration": seconds(p.Duration()), "queued_duration": seconds(p.QueuedDuration()), "variables": []any{},
		"url": fmt.Sprintf("%s/-/pipelines/%d", s.webURL(in), p.ID), "protected_ref": p.Protected,
	}
	payload := object{
		"object_kind": "pipeline", "object_attributes": attributes, "merge_request": nil, "user": user, "project": s.projectObject(in), "commit": nil, "builds": builds,
	}
	if r, err := s.pipelineRequest(ctx, q, p); err != nil {
		return occurrence{}, err
	} else if r != nil {
		payload["merge_request"] = object{
			"id": r.id, "iid": r.iid, "title": r.title, "source_branch": r.source, "source_project_id": idOrNull(r.sourceProject), "target_branch": r.target,
			"target_project_id": r.project, "state": r.state, "merge_status": "unchecked", "detailed_merge_status": "unchecked",
			"url": fmt.Sprintf("%s/-/merge_requests/%d", s.webURL(in), r.iid),
		}
	}
	if err := s.sourcePipeline(ctx, q, payload, p.ParentID, p.ParentJobID); err != nil {
		return occurrence{}, err
	}
	return occurrence{
		projectID: in.ID, trigger: Pipelines, payload: payload, pending: pending{Commits: map[string]string{"commit": p.SHA}},
		chat: chatFacts{branch: shortRef(p.Ref), isDefault: !p.Tag && shortRef(p.Ref) == in.DefaultBranch, isProtected: p.Protected, tag: p.Tag, status: string(p.Status)},
	}, nil
}

// pipelineRequest returns the merge request of a merge request pipeline; nil for
// other pipelines.
func (s *Service) pipelineRequest(ctx context.Context, q db.Q, p *ci.Pipeline) (*requestRow, error) {
	text, ok := strings.CutPrefix(p.Ref, "refs/merge-requests/")
	if !ok {
		return nil, nil
	}
	text, _, _ = strings.Cut(text, "/")
	iid, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, nil
	}
	return findRequest(ctx, q, p.ProjectID, iid)
}

// sourcePipeline adds the pipeline whose trigger job created this one.
func (s *Service) sourcePipeline(ctx context.Context, q db.Q, payload object, parent, job *int64) error {
	if parent == nil {
		return nil
	}
	projectID, path, err := findPipelineProject(ctx, q, *parent)
	if err != nil || projectID == 0 {
		return err
	}
	payload["source_pipeline"] = object{
		"project":     object{"id": projectID, "web_url": s.Site.URL + "/" + path, "path_with_namespace": path},
		"pipeline_id": *parent, "job_id": idOrNull(job),
	}
	return nil
}

// shortRef returns the ref of a pipeline without its prefix, such as refs/heads/.
func shortRef(ref string) string {
	return strings.TrimPrefix(strings.TrimPrefix(ref, git.Heads), git.Tags)
}

// detailed is the label of a status.
func detailed(status string) string {
	if status == "success" {
		return "passed"
	}
	return status
}

func seconds(d *time.Duration) any {
	if d == nil {
		return nil
	}
	return int64(d.Seconds())
}

// jobRow is a job as payloads show it.
type jobRow struct {
	id, projectID, pipelineID                                 int64
	name, stage, status, when, ref, failure, runnerText, tags string
	runnerKind, archive, options, environmentTier             string
	tag, allowFailure, runnerPaused                           bool
	attempts                                                  int64
	userID, runnerID, size                                    *int64
	created                                                   time.Time
	queued, started, finished                                 *time.Time
}

func (j *jobRow) duration(now time.Time) any {
	if j.started == nil {
		return nil
	}
	end := now
	if j.finished != nil {
		end = *j.finished
	}
	return end.Sub(*j.started).Seconds()
}

func (j *jobRow) queuedDuration() any {
	if j.queued == nil || j.started == nil {
		return nil
	}
	return j.started.Sub(*j.queued).Seconds()
}

func (j *jobRow) runner() any {
	if j.runnerID == nil {
		return nil
	}
	tags := []string{}
	if j.tags != "" {
		tags = strings.Split(j.tags, "\n")
	}
	return object{
		"id": *j.runnerID, "description": j.runnerText, "active": !j.runnerPaused, "is_shared": j.runnerKind == "instance_type", "runner_type": j.runnerKind, "tags": tags,
	}
}

func (j *jobRow) environment() any {
	var o struct {
		Environment *struct {
			Name   string `json:"name"`
			Action string `json:"action"`
			Tier   string `json:"deployment_tier"`
		} `json:"environment"`
	}
	if json.Unmarshal([]byte(j.options), &o) != nil || o.Environment == nil || o.Environment.Name == "" {
		return nil
	}
	tier := o.Environment.Tier
	if tier == "" {
		tier = j.environmentTier
	}
	return object{"name": o.Environment.Name, "action": o.Environment.Action, "deployment_tier": tier}
}

func (s *Service) buildObject(j *jobRow, users map[int64]*userRow) object {
	var user any
	if j.userID != nil {
		user = s.userObject(users[*j.userID])
	}
	return object{
		"id": j.id, "stage": j.stage, "name": j.name, "status": j.status, "created_at": zone(j.created), "started_at": zoneOrNull(j.started),
		"finished_at": zoneOrNull(j.finished), "duration": j.duration(s.Now()), "queued_duration": j.queuedDuration(), "failure_reason": orNull(j.failure),
		"when": j.when, "manual": j.when == "manual", "allow_failure": j.allowFailure, "user": user, "runner": j.runner(),
		"artifacts_file": object{"filename": orNull(j.archive), "size": idOrNull(j.size)}, "environment": j.environment(),
	}
}

// JobChanged sends job events.
func (s *Service) JobChanged(ctx context.Context, tx *db.Tx, c ci.JobChange) error {
	list, err := s.listening(ctx, tx, c.ProjectID)
	if err != nil || !wants(list, Jobs) {
		return err
	}
	o, err := s.jobEvent(ctx, tx, c.JobID)
	if err != nil {
		return fmt.Errorf("hooks of job %d: %w", c.JobID, err)
	}
	return s.emit(ctx, tx, list, o)
}

func (s *Service) jobEvent(ctx context.Context, q db.Q, jobID int64) (occurrence, error) {
	j, p, err := findJob(ctx, q, jobID)
	if err != nil {
		return occurrence{}, err
	}
	in, err := project.In(ctx, q, j.projectID)
	if err != nil {
		return occurrence{}, err
	}
	ids := []int64{}
	if j.userID != nil {
		ids = append(ids, *j.userID)
	}
	users, err := findUsersByID(ctx, q, ids)
	if err != nil {
		return occurrence{}, err
	}
	var user any
	if j.userID != nil {
		user = s.userObject(users[*j.userID])
	}
	isoTime := func(t *time.Time) any {
		if t == nil {
			return nil
		}
		return t.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	payload := object{
		"object_kind": "build", "ref": shortRef(j.ref), "tag": j.tag, "before_sha": p.before, "sha": p.sha, "retries_count": j.attempts,
		"build_id": j.id, "build_name": j.name, "build_stage": j.stage, "build_status": j.status, "build_created_at": zone(j.created),
		"build_started_at": zoneOrNull(j.started), "build_finished_at": zoneOrNull(j.finished), "build_created_at_iso": isoTime(&j.created),
		"build_started_at_iso": isoTime(j.started), "build_finished_at_iso": isoTime(j.finished), "build_duration": j.duration(s.Now()),
		"build_queued_duration": j.queuedDuration(), "build_allow_failure": j.allowFailure, "build_failure_reason": reason(j.failure),
		"pipeline_id": j.pipelineID, "runner": j.runner(), "project_id": in.ID, "project_name": in.FullName(), "user": user,
		"commit": object{
			"id": j.pipelineID, "name": orNull(p.name), "sha": p.sha, "message": "", "author_name": "", "author_email": "", "author_url": nil, "status": p.status,
			"duration": p.duration(), "started_at": zoneOrNull(p.started), "finished_at": zoneOrNull(p.finished),
			"started_at_iso": isoTime(p.started), "finished_at_iso": isoTime(p.finished),
		},
		"repository": object{
			"name": in.Name, "url": s.sshURL(in.FullPath), "description": in.Description, "homepage": s.webURL(in), "git_http_url": s.webURL(in) + ".git",
			"git_ssh_url": s.sshURL(in.FullPath), "visibility_level": visibilityLevels[in.Visibility],
		},
		"project": s.projectObject(in), "environment": j.environment(),
	}
	if err := s.sourcePipeline(ctx, q, payload, p.parent, p.parentJob); err != nil {
		return occurrence{}, err
	}
	return occurrence{projectID: in.ID, trigger: Jobs, payload: payload, pending: pending{Commits: map[string]string{"commit": p.sha}}}, nil
}

func reason(failure string) string {
	if failure == "" {
		return "unknown_failure"
	}
	return failure
}

// fillJobCommit adds the author and the message of the commit of a job.
func (s *Service) fillJobCommit(payload object, c *git.Commit) {
	setPath(payload, "commit.message", clip(c.Message, maxMessage))
	setPath(payload, "commit.author_name", clip(c.Author.Name, maxLine))
	setPath(payload, "commit.author_email", clip(c.Author.Email, maxLine))
	setPath(payload, "commit.author_url", "mailto:"+clip(c.Author.Email, maxLine))
}

// DeploymentChanged sends deployment events.
func (s *Service) DeploymentChanged(ctx context.Context, tx *db.Tx, c deployment.StatusChange) error {
	list, err := s.listening(ctx, tx, c.ProjectID)
	if err != nil || !wants(list, Deployments) {
		return err
	}
	d, err := findDeployment(ctx, tx, c)
	if err != nil || d == nil {
		return err
	}
	o, err := s.deploymentEvent(ctx, tx, d)
	if err == nil {
		err = s.protect(ctx, tx, list, &o)
	}
	if err != nil {
		return fmt.Errorf("hooks of deployment %d: %w", d.id, err)
	}
	return s.emit(ctx, tx, list, o)
}

func (s *Service) deploymentEvent(ctx context.Context, q db.Q, d *deploymentRow) (occurrence, error) {
	in, err := project.In(ctx, q, d.projectID)
	if err != nil {
		return occurrence{}, err
	}
	var by int64
	if d.userID != nil {
		by = *d.userID
	}
	users, err := findUsersByID(ctx, q, []int64{by})
	if err != nil {
		return occurrence{}, err
	}
	var user, userURL any
	if p := users[by]; p != nil {
		user, userURL = s.userObject(p), s.Site.URL+"/"+p.username
	}
	var job any
	if d.jobID != nil {
		job = fmt.Sprintf("%s/-/jobs/%d", s.webURL(in), *d.jobID)
	}
	payload := object{
		"object_kind": "deployment", "status": d.status, "status_changed_at": d.updated.UTC().Format("2006-01-02 15:04:05 -0700"), "deployment_id": d.id,
		"deployable_id": idOrNull(d.jobID), "deployable_url": job, "environment": d.environment, "environment_tier": d.tier, "environment_slug": d.slug,
		"environment_external_url": orNull(d.url), "project": s.projectObject(in), "ref": shortRef(d.ref), "short_sha": d.sha[:min(8, len(d.sha))],
		"user": user, "user_url": userURL, "commit_url": s.webURL(in) + "/-/commit/" + d.sha, "commit_title": nil,
	}
	return occurrence{
		projectID: in.ID, trigger: Deployments, payload: payload, pending: pending{Titles: map[string]string{"commit_title": d.sha}},
		chat: chatFacts{branch: shortRef(d.ref), isDefault: shortRef(d.ref) == in.DefaultBranch, status: d.status},
	}, nil
}
