package merge

import (
	"context"
	"slices"

	"svc/internal/db"
	"svc/internal/git"
	"svc/internal/project"
)

// Status is the mergeability of a merge request.
type Status struct {
	// Detailed is the first check that fails, or Mergeable.
	Detailed Detail
	// Also has the other checks that fail, in order.
	Also []Detail
	// Git is the merge status: can_be_merged, cannot_be_merged, checking, unchecked, or
	// cannot_be_merged_recheck if there were conflicts before the target branch moved.
	Git string
}

// Detail is a detailed merge status.
type Detail string

// The detailed merge statuses.
const (
	Mergeable    Detail = "mergeable"
	NotOpen      Detail = "not_open"
	Preparing    Detail = "preparing"
	Checking     Detail = "checking"
	Unchecked    Detail = "unchecked"
	IsDraft      Detail = "draft_status"
	NoCommits    Detail = "commits_status" // a branch is missing, or the source has no commits that the target lacks
	OpenThreads  Detail = "discussions_not_resolved"
	ChangesAsked Detail = "requested_changes"     // a reviewer requested changes
	NotApproved  Detail = "not_approved"          // an approval rule is not satisfied
	Blocked      Detail = "merge_request_blocked" // it depends on a merge request that is not merged
	Conflicts    Detail = "conflict"
	NeedsRebase  Detail = "need_rebase"
	MustPass     Detail = "ci_must_pass"
	StillRunning Detail = "ci_still_running"
)

// The results of a merge check of two commits. canBehind means that the target has
// commits that the head does not have.
const (
	canMerge    = "can"
	canBehind   = "behind"
	cannotMerge = "cannot"
	recheck     = "recheck" // there were conflicts before the target moved; unknown now
)

// waits reports whether auto-merge waits until the check passes.
func (d Detail) waits() bool {
	switch d {
	case IsDraft, OpenThreads, ChangesAsked, NotApproved, Blocked, MustPass, StillRunning:
		return true
	}
	return false
}

// failing returns the checks that fail, in order.
func (s Status) failing() []Detail {
	if s.Detailed == Mergeable {
		return nil
	}
	return append([]Detail{s.Detailed}, s.Also...)
}

// Waits reports whether checks fail that auto-merge waits for, and no others.
func (s Status) Waits() bool {
	failed := s.failing()
	return len(failed) > 0 && !slices.ContainsFunc(failed, func(d Detail) bool { return !d.waits() })
}

// known reports whether the result of git is known.
func (c check) known() bool { return c.result != "" && c.result != recheck }

// Fails reports whether the check d fails.
func (s Status) Fails(d Detail) bool { return s.Detailed == d || slices.Contains(s.Also, d) }

// Conflicting reports whether there are conflicts.
func (s Status) Conflicting() bool { return s.Git == "cannot_be_merged" }

// HadConflicts reports whether there were conflicts at the last check, which
// may have been before the target branch moved.
func (s Status) HadConflicts() bool { return s.Conflicting() || s.Git == "cannot_be_merged_recheck" }

// Pipeline has the fields of the head pipeline that merging depends on.
type Pipeline struct {
	ID        int64
	ProjectID int64
	Active    bool // has not ended
	Success   bool
	Skipped   bool
}

// Pipelines returns the newest pipelines of the heads of merge requests, by
// merge request ID. Merge requests without a pipeline are left out.
type Pipelines func(ctx context.Context, list []*MergeRequest) (map[int64]*Pipeline, error)

// OnPipelines registers the function that returns pipelines. It is called at
// startup.
func (s *Service) OnPipelines(p Pipelines) { s.pipelines = p }

// headPipelines sets the head pipelines of merge requests.
func (s *Service) headPipelines(ctx context.Context, list ...*MergeRequest) error {
	if s.pipelines == nil || len(list) == 0 {
		return nil
	}
	found, err := s.pipelines(ctx, list)
	for _, m := range list {
		m.Pipeline = found[m.ID]
	}
	return err
}

// known returns the status of the last check, for lists.
func (m *MergeRequest) known(in *project.Project) Status {
	if in == nil {
		return Status{Detailed: Unchecked, Git: "unchecked"}
	}
	return m.statusOf(in, m.check.result, false)
}

// status returns the status for the current commits of the branches.
func (s *Service) status(ctx context.Context, in *project.Project, m *MergeRequest) (Status, error) {
	if m.State != Opened {
		return m.statusOf(in, m.check.result, false), nil
	}
	target, err := s.tip(ctx, in, m.TargetBranch)
	if err != nil {
		return Status{}, err
	}
	source, err := s.sourceHead(ctx, m)
	if err != nil {
		return Status{}, err
	}
	missing := source == "" || target == ""
	switch {
	case missing: // a branch does not exist
		return m.statusOf(in, cannotMerge, true), nil
	case string(source) != m.Head:
		return Status{Detailed: Checking, Git: "checking"}, nil // a push has not been recorded yet
	}
	if err := s.look(ctx, in, m, target); err != nil {
		return Status{}, err
	}
	if err := s.checkOwners(ctx, in, m, target); err != nil {
		return Status{}, err
	}
	return m.statusOf(in, m.check.result, m.Version != nil && m.Version.Base == m.Version.Head), nil
}

// look checks with git whether the head can be merged into the target, unless the
// result for these commits is known.
func (s *Service) look(ctx context.Context, in *project.Project, m *MergeRequest, target git.OID) error {
	if m.check.known() && m.check.source == m.Head && m.check.target == string(target) {
		return nil
	}
	found := check{result: canMerge, source: m.Head, target: string(target)}
	has, err := s.Repos.Has(ctx, in, git.OID(m.Head), target)
	if err != nil {
		return err
	}
	if !has {
		found.result = canBehind
		clashes, err := s.Repos.Clashes(ctx, in, target, git.OID(m.Head))
		if err != nil {
			return err
		}
		if clashes {
			found.result = cannotMerge
		}
	}
	// If a check after a push to the target finds the old conflicts again, they are not
	// new.
	news := found.result == cannotMerge && m.check.result != cannotMerge && m.check.result != recheck
	m.check = found
	if !news {
		_, err := saveCheck(ctx, s.DB, m)
		return err
	}
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		saved, err := saveCheck(ctx, tx, m)
		if err != nil || !saved {
			return err
		}
		return s.Events.Changed.Publish(ctx, tx, Change{Request: m, Kind: Conflicted})
	})
}

// statusOf returns the status for the result of a merge check. The pipeline must
// have been read if the project requires one.
func (m *MergeRequest) statusOf(in *project.Project, result string, empty bool) Status {
	st := Status{Git: "unchecked"}
	switch result {
	case canMerge, canBehind:
		st.Git = "can_be_merged"
	case cannotMerge:
		st.Git = "cannot_be_merged"
	case recheck:
		st.Git, result = "cannot_be_merged_recheck", ""
	}
	if empty && m.State == Opened {
		st.Git = "cannot_be_merged"
	}
	if m.State == Merged {
		st.Git = "can_be_merged"
	}
	switch {
	case m.State != Opened:
		st.Detailed = NotOpen
	case m.PreparedAt == nil && !empty:
		st.Detailed = Preparing
	case result == "" && !empty:
		st.Detailed = Unchecked
	default:
		st.Detailed = Mergeable
		if failed := m.failed(in.MergeSettings(), result, empty); len(failed) > 0 {
			st.Detailed, st.Also = failed[0], failed[1:]
		}
	}
	return st
}

// failed returns the failing checks of an open merge request, in order.
func (m *MergeRequest) failed(rules project.Settings, result string, empty bool) []Detail {
	var list []Detail
	add := func(fails bool, d Detail) {
		if fails {
			list = append(list, d)
		}
	}
	add(m.Draft, IsDraft)
	add(empty, NoCommits)
	add(rules.OnlyAllowMergeIfAllDiscussionsAreResolved && m.OpenThreads > 0, OpenThreads)
	add(m.ChangeRequests > 0, ChangesAsked)
	add(m.lacksApproval, NotApproved)
	add(m.Blockers > 0, Blocked)
	if !empty {
		add(result == cannotMerge, Conflicts)
		add(result == canBehind && rules.MergeMethod != "merge", NeedsRebase)
		ci := m.pipelineCheck(rules)
		add(ci != Mergeable, ci)
	}
	return list
}

func (m *MergeRequest) pipelineCheck(rules project.Settings) Detail {
	p := m.Pipeline
	switch {
	case !rules.OnlyAllowMergeIfPipelineSucceeds:
	case p != nil && p.Active:
		return StillRunning
	case p == nil || !p.Success && (!p.Skipped || !rules.AllowMergeOnSkippedPipeline):
		return MustPass
	}
	return Mergeable
}

// Diverged counts the commits of the target branch that the head does not have.
// The actor must have access to the merge request. NotFound.
func (s *Service) Diverged(ctx context.Context, m *MergeRequest) (int, error) {
	in, err := s.system(ctx, &m.ProjectID)
	if err != nil || in == nil {
		return 0, err
	}
	target, err := s.tip(ctx, in, m.TargetBranch)
	if err != nil || target == "" {
		return 0, err
	}
	return s.Repos.Behind(ctx, in, target, git.OID(m.Head))
}
