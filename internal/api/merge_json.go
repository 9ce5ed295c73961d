package api

import (
	"strconv"
	"time"

	"svc/internal/errs"
	"svc/internal/merge"
	"svc/internal/project"
)

// mergeSimpleJSON is a merge request in the simple view.
type mergeSimpleJSON struct {
	ID          int64   `json:"id"`
	IID         int64   `json:"iid"`
	ProjectID   int64   `json:"project_id"`
	Title       string  `json:"title"`
	Description *string `json:"description"`
	State       string  `json:"state"`
	CreatedAt   stamp   `json:"created_at"`
	UpdatedAt   stamp   `json:"updated_at"`
	WebURL      string  `json:"web_url"`
}

func toMergeSimple(site *Site, m *merge.MergeRequest) mergeSimpleJSON {
	return mergeSimpleJSON{
		m.ID, m.IID, m.ProjectID, m.Title, textOrNull(m.Description), string(m.State), toStamp(m.CreatedAt), toStamp(m.UpdatedAt), mergeURL(site, m),
	}
}

func mergeURL(site *Site, m *merge.MergeRequest) string {
	return site.URL + "/" + m.ProjectPath + "/-/merge_requests/" + strconv.FormatInt(m.IID, 10)
}

type mergeRequestJSON struct {
	mergeSimpleJSON
	MergedBy                    *userPublicJSON  `json:"merged_by"` // deprecated
	MergeUser                   *userPublicJSON  `json:"merge_user"`
	MergedAt                    *stamp           `json:"merged_at"`
	ClosedBy                    *userPublicJSON  `json:"closed_by"`
	ClosedAt                    *stamp           `json:"closed_at"`
	TargetBranch                string           `json:"target_branch"`
	SourceBranch                string           `json:"source_branch"`
	UserNotesCount              int64            `json:"user_notes_count"`
	Upvotes                     int64            `json:"upvotes"`
	Downvotes                   int64            `json:"downvotes"`
	Author                      *userPublicJSON  `json:"author"`
	Assignees                   []userPublicJSON `json:"assignees"`
	Assignee                    *userPublicJSON  `json:"assignee"` // the first one
	Reviewers                   []userPublicJSON `json:"reviewers"`
	SourceProjectID             *int64           `json:"source_project_id"`
	TargetProjectID             int64            `json:"target_project_id"`
	Labels                      any              `json:"labels"` // names, or details
	Draft                       bool             `json:"draft"`
	Imported                    bool             `json:"imported"`
	ImportedFrom                string           `json:"imported_from"`
	WorkInProgress              bool             `json:"work_in_progress"` // deprecated
	Milestone                   *milestoneJSON   `json:"milestone"`
	MergeWhenPipelineSucceeds   bool             `json:"merge_when_pipeline_succeeds"`
	MergeStatus                 string           `json:"merge_status"` // deprecated
	DetailedMergeStatus         string           `json:"detailed_merge_status"`
	MergeAfter                  *stamp           `json:"merge_after"`
	SHA                         string           `json:"sha"`
	MergeCommitSHA              *string          `json:"merge_commit_sha"`
	SquashCommitSHA             *string          `json:"squash_commit_sha"`
	DiscussionLocked            *bool            `json:"discussion_locked"`
	ShouldRemoveSourceBranch    *bool            `json:"should_remove_source_branch"`
	ForceRemoveSourceBranch     bool             `json:"force_remove_source_branch"`
	PreparedAt                  *stamp           `json:"prepared_at"`
	AllowCollaboration          *bool            `json:"allow_collaboration,omitempty"`
	AllowMaintainerToPush       *bool            `json:"allow_maintainer_to_push,omitempty"`
	ApprovalsBeforeMerge        *int64           `json:"approvals_before_merge"` // deprecated
	Reference                   string           `json:"reference"`              // deprecated
	References                  referencesJSON   `json:"references"`
	TimeStats                   timeStatsJSON    `json:"time_stats"`
	Squash                      bool             `json:"squash"`
	SquashOnMerge               bool             `json:"squash_on_merge"`
	TaskCompletionStatus        taskStatusJSON   `json:"task_completion_status"`
	HasConflicts                bool             `json:"has_conflicts"`
	BlockingDiscussionsResolved bool             `json:"blocking_discussions_resolved"`
}

func toMergeRequest(site *Site, m *merge.MergeRequest, details bool, now time.Time) mergeRequestJSON {
	planned := toPlanned(site, &m.Issuable, details, now)
	short := "!" + strconv.FormatInt(m.IID, 10)
	out := mergeRequestJSON{
		mergeSimpleJSON: toMergeSimple(site, m), MergedAt: toStampOrNull(m.MergedAt), ClosedBy: toUserOrNull(site, m.ClosedBy, now), ClosedAt: toStampOrNull(m.ClosedAt),
		TargetBranch: m.TargetBranch, SourceBranch: m.SourceBranch, UserNotesCount: m.Notes, Upvotes: m.Upvotes, Downvotes: m.Downvotes, Author: toUserOrNull(site, m.Author, now),
		Labels: planned.labels, Milestone: planned.milestone, Assignees: planned.assignees, Assignee: planned.assignee,
		Reviewers: toUsers(site, m.Reviewers, now), SourceProjectID: m.SourceProjectID, TargetProjectID: m.ProjectID,
		Draft: m.Draft, WorkInProgress: m.Draft, ImportedFrom: "none", MergeWhenPipelineSucceeds: m.AutoMergeByID != nil,
		MergeStatus: m.Status.Git, DetailedMergeStatus: string(m.Status.Detailed), SHA: m.Head, MergeCommitSHA: textOrNull(m.MergeCommit), SquashCommitSHA: textOrNull(m.SquashCommit),
		DiscussionLocked: m.Locked, ForceRemoveSourceBranch: m.RemoveSource, PreparedAt: toStampOrNull(m.PreparedAt),
		ApprovalsBeforeMerge: m.ApprovalsBeforeMerge, Reference: short, References: referencesJSON{short, short, m.ProjectPath + short}, Squash: m.Squash, SquashOnMerge: m.SquashOnMerge,
		TimeStats:            toTimeStats(&m.Issuable),
		TaskCompletionStatus: toTasks(m.Description), HasConflicts: m.Status.Conflicting(), BlockingDiscussionsResolved: m.ResolvedThreads(),
	}
	out.MergedBy = toUserOrNull(site, m.MergedBy, now)
	out.MergeUser = out.MergedBy
	if m.AutoMergeBy != nil {
		out.MergeUser = toUserOrNull(site, m.AutoMergeBy, now)
	}
	if m.RemoveSource {
		out.ShouldRemoveSourceBranch = &m.RemoveSource
	}
	if m.FromFork() {
		out.AllowCollaboration, out.AllowMaintainerToPush = &m.AllowCollaboration, &m.AllowCollaboration
	}
	return out
}

// mergeDetailJSON is the representation of a single merge request.
type mergeDetailJSON struct {
	mergeRequestJSON
	Subscribed            bool                `json:"subscribed"`
	ChangesCount          *string             `json:"changes_count"`
	LatestBuildStartedAt  *stamp              `json:"latest_build_started_at"`
	LatestBuildFinishedAt *stamp              `json:"latest_build_finished_at"`
	FirstDeployedAt       *stamp              `json:"first_deployed_to_production_at"`
	Pipeline              *pipelineJSON       `json:"pipeline"` // deprecated
	HeadPipeline          *pipelineDetailJSON `json:"head_pipeline"`
	DiffRefs              *diffRefsJSON       `json:"diff_refs"`
	MergeError            *string             `json:"merge_error"`
	RebaseInProgress      *bool               `json:"rebase_in_progress,omitempty"`
	DivergedCommitsCount  *int                `json:"diverged_commits_count,omitempty"`
	TitleHTML             *string             `json:"title_html,omitempty"`
	DescriptionHTML       *string             `json:"description_html,omitempty"`
	FirstContribution     bool                `json:"first_contribution"`
	User                  mergeUserJSON       `json:"user"`
}

type diffRefsJSON struct {
	Base  *string `json:"base_sha"`
	Head  string  `json:"head_sha"`
	Start *string `json:"start_sha"`
}

// mergeUserJSON is the permissions of the current user.
type mergeUserJSON struct {
	CanMerge bool `json:"can_merge"`
}

func (a *API) presentMerge(c *call, m *merge.MergeRequest, err error) (mergeDetailJSON, error) {
	if err != nil {
		return mergeDetailJSON{}, err
	}
	out := mergeDetailJSON{
		mergeRequestJSON: toMergeRequest(c.site, m, false, a.Now()), Subscribed: m.Subscribed, MergeError: textOrNull(m.MergeError), User: mergeUserJSON{m.CanMerge},
	}
	if v := m.Version; v != nil {
		n := strconv.FormatInt(v.Files, 10)
		out.ChangesCount, out.DiffRefs = &n, &diffRefsJSON{textOrNull(v.Base), v.Head, textOrNull(v.Start)}
	}
	if m.Pipeline == nil {
		return out, nil
	}
	in, p, err := a.CI.Pipeline(c, c.actor, project.RefTo(m.Pipeline.ProjectID), m.Pipeline.ID)
	if errs.IsRefusal(err) {
		return out, nil // the user has no access to pipelines
	}
	head, err := a.presentPipeline(c, in, p, err)
	if err != nil {
		return out, err
	}
	out.HeadPipeline, out.Pipeline = &head, &head.pipelineJSON
	out.LatestBuildStartedAt, out.LatestBuildFinishedAt = head.StartedAt, head.FinishedAt
	return out, nil
}
