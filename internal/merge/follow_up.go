package merge

import (
	"context"
	"fmt"
	"strings"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/queue"
)

// FollowUp identifies the threads of a merge request that are resolved by a new
// issue of the project.
type FollowUp struct {
	Request    int64  // number of the merge request
	Discussion string // one thread; empty: all open threads
}

// FollowUpIssue has the default values of the form for such an issue.
type FollowUpIssue struct {
	FollowUp
	Title       string
	Description string
	Threads     int

	in       *project.Project
	m        *MergeRequest
	resolved []string
}

// Limits of issues that resolve threads: the number of resolved threads, the number
// of threads listed in the description, and the length of a quotation.
const (
	maxFollowed   = 1000
	maxListed     = 100
	maxQuoteRunes = 500
)

// FollowUp returns the default title and description of an issue that resolves
// threads of a merge request, for users who may resolve its threads. NotFound;
// Forbidden.
func (s *Service) FollowUp(ctx context.Context, by actor.Actor, ref project.Ref, f FollowUp) (*FollowUpIssue, error) {
	in, m, err := s.request(ctx, by, ref, f.Request)
	if err != nil {
		return nil, err
	}
	on := s.noteable(by, in, m)
	if !on.CanResolve(by) {
		return nil, errs.Forbidden("You cannot resolve the threads of this merge request.")
	}
	ids, err := s.Plan.OpenThreadIDs(ctx, on, f.Discussion, maxFollowed)
	if err != nil {
		return nil, err
	}
	if f.Discussion != "" && len(ids) == 0 {
		return nil, errs.NotFound("Discussion")
	}
	threads, err := s.Plan.DiscussionsByID(ctx, on, ids[:min(len(ids), maxListed)])
	if err != nil {
		return nil, err
	}
	title := fmt.Sprintf("Follow-up from %q", m.Title)
	if r := []rune(title); len(r) > plan.MaxTitle {
		title = string(r[:plan.MaxTitle])
	}
	return &FollowUpIssue{
		FollowUp: f, Title: title, Description: s.listThreads(in, m, threads, len(ids)-len(threads)), Threads: len(ids), in: in, m: m, resolved: ids,
	}, nil
}

// listThreads returns a task list of threads. The text of internal notes is left
// out, because the issue may have other readers.
func (s *Service) listThreads(in *project.Project, m *MergeRequest, threads []*plan.Discussion, more int) string {
	if len(threads) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "These threads of !%d should be addressed:\n", m.IID)
	for _, d := range threads {
		first := d.Notes[0]
		at := fmt.Sprintf("%s/%s/-/merge_requests/%d#note_%d", s.URL, in.FullPath, m.IID, first.ID)
		who := "A deleted user"
		if first.Author != nil {
			who = "@" + first.Author.Username
		}
		if first.Internal {
			fmt.Fprintf(&b, "\n- [ ] An [internal thread](%s)\n", at)
			continue
		}
		fmt.Fprintf(&b, "\n- [ ] %s started a [thread](%s)%s:\n\n%s", who, at, replies(len(d.Notes)-1), quote(first.Body))
	}
	if more > 0 {
		fmt.Fprintf(&b, "\n%d more threads are not listed.\n", more)
	}
	return b.String()
}

func replies(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return " (1 reply)"
	}
	return fmt.Sprintf(" (%d replies)", n)
}

// quote returns the beginning of a text as a block quote in a list item.
func quote(text string) string {
	if r := []rune(text); len(r) > maxQuoteRunes {
		text = string(r[:maxQuoteRunes]) + "…"
	}
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")), "\n") {
		b.WriteString(strings.TrimRight("  > "+line, " ") + "\n")
	}
	return b.String()
}

// CreateIssue creates an issue and resolves threads of a merge request. Without a
// description, the issue lists the threads. The errors are those of FollowUp and
// plan.CreateIssue.
func (s *Service) CreateIssue(ctx context.Context, by actor.Actor, ref project.Ref, n plan.NewIssue, f FollowUp) (*plan.Issue, error) {
	next, err := s.FollowUp(ctx, by, ref, f)
	if err != nil {
		return nil, err
	}
	if n.Description == nil || *n.Description == "" {
		n.Description = &next.Description
	}
	n.Also = func(ctx context.Context, tx *db.Tx, i *plan.Issue) error {
		m, err := lockRequest(ctx, tx, next.m.ID)
		if err != nil {
			return err
		}
		for _, id := range next.resolved {
			if err := s.Plan.ResolveThread(ctx, tx, by, m.Target(), id); err != nil {
				return err
			}
		}
		if len(next.resolved) == 0 {
			return nil
		}
		text := fmt.Sprintf("created #%d to continue this discussion", i.IID)
		if n := len(next.resolved); n > 1 {
			text = fmt.Sprintf("created #%d to continue %d discussions", i.IID, n)
		}
		if err := s.Plan.AddSystemNote(ctx, tx, by, m.Target(), m.IID, m.ProjectID, text); err != nil {
			return err
		}
		return s.continueAuto(ctx, tx, m)
	}
	return s.Plan.CreateIssue(ctx, by, project.RefTo(next.in.ID), n)
}

// continueAuto adds the background job that merges a merge request, if auto-merge is
// set: the change in the transaction may be what it waits for. The caller has locked
// the merge request; otherwise auto-merge that is set concurrently would be missed.
func (s *Service) continueAuto(ctx context.Context, tx *db.Tx, m *MergeRequest) error {
	if m.State != Opened || m.autoMerge == "" {
		return nil
	}
	return s.Queue.Add(ctx, tx, autoWork{m.ID}, queue.In(lane))
}
