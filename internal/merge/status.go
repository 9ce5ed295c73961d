package merge

import (
	"context"

	"svc/internal/git"
	"svc/internal/project"
)

// Status is the mergeability of a merge request.
type Status struct {
	// Detailed is the first thing that stands in the way, or mergeable.
	Detailed Detail
	// Git is what git says: can_be_merged, cannot_be_merged, checking, unchecked
	// or, if it could not be merged before the target moved,
	// cannot_be_merged_recheck.
	Git string
}

// Detail is the detailed merge status: what blocks a merge.
type Detail string

// What can stand in the way.
const (
	Mergeable    Detail = "mergeable"
	NotOpen      Detail = "not_open"
	Preparing    Detail = "preparing"
	Checking     Detail = "checking"
	Unchecked    Detail = "unchecked"
	IsDraft      Detail = "draft_status"
	NoCommits    Detail = "commits_status" // a branch is missing, or the source has nothing that the target has not
	OpenThreads  Detail = "discussions_not_resolved"
	Conflicts    Detail = "conflict"
	NeedsRebase  Detail = "need_rebase"
	MustPass     Detail = "ci_must_pass"
	StillRunning Detail = "ci_still_running"
)

// What git says of two commits. Of one that is behind the target has commits that
// the head has not.
const (
	canMerge    = "can"
	canBehind   = "behind"
	cannotMerge = "cannot"
	recheck     = "recheck" // it could not be merged before the target moved; not known now
)

// known reports whether git was asked.
func (c check) known() bool { return c.result != "" && c.result != recheck }

// Conflicting reports whether git cannot merge it.
func (s Status) Conflicting() bool { return s.Git == "cannot_be_merged" }

// HadConflicts reports whether git could not merge it when it was asked last,
// which may have been before the target branch moved.
func (s Status) HadConflicts() bool { return s.Conflicting() || s.Git == "cannot_be_merged_recheck" }

// Pipeline is the head pipeline, as far as merging depends on it.
type Pipeline struct {
	ID        int64
	ProjectID int64
	Active    bool // it has not ended
	Success   bool
	Skipped   bool
}

// Pipelines returns the newest pipelines of the heads of merge requests, by the
// ids of the requests; those without one are left out.
type Pipelines func(ctx context.Context, list []*MergeRequest) (map[int64]*Pipeline, error)

// OnPipelines registers the feature that has pipelines; it is called at
// start-up.
func (s *Service) OnPipelines(p Pipelines) { s.pipelines = p }

// headPipelines reads the pipelines of the heads of requests.
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

// known is the status of a request in a list, by what was found out last.
func (m *MergeRequest) known(in *project.Project) Status {
	if in == nil {
		return Status{Detailed: Unchecked, Git: "unchecked"}
	}
	return m.judge(in, m.check.result, false)
}

// status is the status of a request by what its branches are now.
func (s *Service) status(ctx context.Context, in *project.Project, m *MergeRequest) (Status, error) {
	if m.State != Opened {
		return m.judge(in, m.check.result, false), nil
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
	case missing: // nothing to compare
		return m.judge(in, cannotMerge, true), nil
	case string(source) != m.Head:
		return Status{Detailed: Checking, Git: "checking"}, nil // a push that is being recorded
	}
	if err := s.look(ctx, in, m, target); err != nil {
		return Status{}, err
	}
	return m.judge(in, m.check.result, m.Version != nil && m.Version.Base == m.Version.Head), nil
}

// look asks git about the head and the target, unless it is known of just these
// two.
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
	m.check = found
	return saveCheck(ctx, s.DB, m)
}

// judge finds the first thing that stands in the way. Where the project asks for
// a pipeline that has been read before.
func (m *MergeRequest) judge(in *project.Project, result string, empty bool) Status {
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
	rules := in.Settings
	switch {
	case m.State != Opened:
		st.Detailed = NotOpen
	case m.PreparedAt == nil && !empty:
		st.Detailed = Preparing
	case result == "" && !empty:
		st.Detailed = Unchecked
	case m.Draft:
		st.Detailed = IsDraft
	case empty:
		st.Detailed = NoCommits
	case rules.OnlyAllowMergeIfAllDiscussionsAreResolved && m.OpenThreads > 0:
		st.Detailed = OpenThreads
	case result == cannotMerge:
		st.Detailed = Conflicts
	case result == canBehind && rules.MergeMethod != "merge":
		st.Detailed = NeedsRebase
	default:
		st.Detailed = m.judgePipeline(rules)
	}
	return st
}

func (m *MergeRequest) judgePipeline(rules project.Settings) Detail {
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

// Diverged counts the commits that the target of a request has and its head has
// not; for one that was read. NotFound.
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
