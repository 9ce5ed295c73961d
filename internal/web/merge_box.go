package web

import (
	"fmt"
	"strings"

	"svc/internal/merge"
)

// mergeBox shows whether a merge request can be merged, and has the
// buttons that the visitor may press.
type mergeBox struct {
	Kind   string // ok, wait, warn or done: selects the icon
	Head   string
	Text   string
	Also   []mergeCheck // the other checks that fail
	CI     *ciStatus    // of the head; nil without a pipeline
	Merges bool         // it can be merged now
	Auto   bool         // it can be merged when its pipeline has succeeded
	// AutoText is the label of the button for that.
	AutoText string
	Waits    bool // it is set to be merged automatically
	Cancels  bool // the visitor may cancel that
	Ready    bool // it is a draft that the visitor may mark as ready
	Rebases  bool
	Behind   bool   // it can be rebased, but this is optional
	Bypass   bool   // the visitor may bypass requested changes
	Threads  int    // open threads of an open one
	FollowUp string // the form of an issue that continues the open threads
	Commit   string // of a merged one, that can be reverted and cherry-picked
	Solves   string // the page to resolve conflicts
	Fault    string // of the last attempt
	Again    bool   // the check is still running
	Squash   string // choice, always or never
	Removes  bool   // whether to remove the source branch can be chosen
	Open     bool   // the merge request is open
	Closed   bool
}

// mergeCheck is a check that fails, besides the first one.
type mergeCheck struct{ Head, Text string }

// mergeBox shows what prevents the merge.
func (w *Web) mergeBox(v *visit, p *mergePage, can merge.Can) (mergeBox, error) {
	m, rules := p.MergeRequest, p.P.Project.Settings
	b := mergeBox{AutoText: "Merge when pipeline succeeds", Fault: m.MergeError, Squash: "choice", Removes: p.Source != nil && m.SourceBranch != p.Source.DefaultBranch,
		Open: m.State == merge.Opened, Closed: m.State == merge.Closed}
	if rules.SquashOption == "always" || rules.SquashOption == "never" {
		b.Squash = rules.SquashOption
	}
	var err error
	if b.CI, err = w.headState(v, p); err != nil {
		return b, err
	}
	may := can.Merge
	b.Kind, b.Head, b.Text = mergeWords(m, m.Status.Detailed, p.P.Project.Settings.MergeMethod)
	if m.State != merge.Opened {
		b.Fault = ""
		b.Commit, err = w.mergedCommit(v, p)
		return b, err
	}
	b.Threads = int(m.OpenThreads)
	if can.FollowUp && b.Threads > 0 {
		b.FollowUp = followUp(p.Base, p.IID)
	}
	if m.Rebasing(w.Now()) {
		b.Kind, b.Head, b.Text, b.Again = "wait", "Rebase in progress", "The source branch is being rebased onto "+shown(m.TargetBranch)+".", true
		return b, nil
	}
	running := m.Pipeline != nil && m.Pipeline.Active
	b.Again = running // the page shows how it ends
	switch m.Status.Detailed {
	case merge.Mergeable:
		b.Merges, b.Auto = may, may && running
	case merge.StillRunning:
		b.Auto = may
	case merge.NotApproved, merge.Blocked:
		b.Auto, b.AutoText = may && m.Status.Waits(), "Set to auto-merge"
	case merge.Preparing, merge.Checking, merge.Unchecked:
		b.Again = true
	}
	b.Ready = m.Status.Fails(merge.IsDraft) && p.Edits
	b.Rebases = m.Status.Fails(merge.NeedsRebase) && can.Rebase
	b.Bypass = m.Status.Fails(merge.ChangesAsked) && can.Bypass
	if m.Status.Fails(merge.Conflicts) && p.Review.Applies {
		b.Solves = p.Path + "/conflicts"
	}
	if err := w.mergeChecks(v, p, &b); err != nil {
		return b, err
	}
	b.Behind = can.Rebase && !b.Rebases
	if m.AutoMergeBy != nil {
		b.Waits, b.Again, b.Merges, b.Auto = true, true, false, false
		b.Cancels = can.CancelAuto
	}
	if b.Kind == "ok" && !may {
		b.Text = "Ask a user who can merge into " + shown(m.TargetBranch) + " to merge it."
	}
	return b, nil
}

// mergeChecks names who requested changes, and sets the checks that fail besides
// the first one.
func (w *Web) mergeChecks(v *visit, p *mergePage, b *mergeBox) error {
	m, asked := p.MergeRequest, ""
	if m.Status.Fails(merge.ChangesAsked) {
		who, err := w.Merges.ChangeRequesters(v, m)
		if err != nil {
			return err
		}
		names := make([]string, len(who))
		for i, u := range who {
			names[i] = u.Name
		}
		asked = "Changes requested by " + strings.Join(names, ", ") + ". Their approval is needed before it can be merged."
	}
	if m.Status.Detailed == merge.ChangesAsked {
		b.Text = asked
	}
	for _, d := range m.Status.Also {
		_, head, text := mergeWords(m, d, "")
		if d == merge.ChangesAsked {
			text = asked
		}
		b.Also = append(b.Also, mergeCheck{words(strings.TrimPrefix(head, "Merge blocked: ")), text})
	}
	return nil
}

// followUp returns the URL of the form of an issue that continues the open
// threads of a merge request.
func followUp(base string, iid int64) string {
	return fmt.Sprintf("%sissues/new?merge_request_to_resolve_discussions_of=%d", base, iid)
}

// headState is the state of the pipeline of the head, in the project of the
// source or that of the target.
func (w *Web) headState(v *visit, p *mergePage) (*ciStatus, error) {
	if p.Source != nil && p.FromFork() {
		found, err := w.CI.CommitPipeline(v, v.actor, p.Source, p.MergeRequest.Head)
		if err != nil || found != nil {
			return stateOf(p.Source, found), err
		}
	}
	found, err := w.CI.CommitPipeline(v, v.actor, p.P.Project, p.MergeRequest.Head)
	return stateOf(p.P.Project, found), err
}

// mergeWords describes the state of a merge request, or a check of an open one.
func mergeWords(m *merge.MergeRequest, check merge.Detail, method string) (kind, head, text string) {
	target := shown(m.TargetBranch)
	switch m.State {
	case merge.Merged:
		return "done", "Merged", "The changes were merged into " + target + "."
	case merge.Closed:
		return "warn", "Closed", "The changes were not merged into " + target + "."
	}
	switch check {
	case merge.Mergeable:
		return "ok", "Ready to merge", map[string]string{
			"ff": "Fast-forward merge into " + target + " without a merge commit.",
		}[method]
	case merge.Preparing:
		return "wait", "Preparing", "The merge request is being prepared."
	case merge.Checking, merge.Unchecked:
		return "wait", "Checking if the merge request can be merged", ""
	case merge.IsDraft:
		return "warn", "Merge blocked: draft", "Mark the merge request as ready to merge it."
	case merge.NoCommits:
		return "warn", "Nothing to merge", "The source branch does not exist, or has no commits that are not in " + target + "."
	case merge.OpenThreads:
		return "warn", "Merge blocked: unresolved threads", "Resolve all threads to merge; " + plural(int(m.OpenThreads), "thread") + " left."
	case merge.NotApproved:
		return "warn", "Merge blocked: approval required", "All required approvals must be given."
	case merge.Blocked:
		return "warn", "Merge blocked: dependencies", plural(int(m.Blockers), "merge request") + " must be merged before this one."
	case merge.ChangesAsked:
		return "warn", "Merge blocked: changes requested", ""
	case merge.Conflicts:
		return "bad", "Merge blocked: merge conflicts", "Both branches changed the same lines. Merge " + target + " into the source branch, resolve the conflicts and push."
	case merge.NeedsRebase:
		return "warn", "Merge blocked: rebase required", "The source branch is behind " + target + "."
	case merge.MustPass:
		return "bad", "Merge blocked: pipeline must succeed", "Push a fix or retry the failed jobs."
	case merge.StillRunning:
		return "wait", "Pipeline running", "The merge request can be merged when the pipeline succeeds."
	}
	return "warn", "Merge blocked", words(string(check)) + "."
}
