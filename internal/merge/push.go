package merge

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"svc/internal/activity"
	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/notify"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/repo"
)

// lane is the queue lane of background jobs that run git for merge requests, so that
// other background jobs do not wait for them.
const lane = "merge_requests"

func (s *Service) handleWork() {
	s.Queue.Lane(lane, 2)
	queue.Handle(s.Queue, s.workCollect)
	queue.Handle(s.Queue, s.workDrop)
	queue.Handle(s.Queue, s.workCheck)
	queue.Handle(s.Queue, s.workLanded, queue.Timeout(30*time.Minute))
	queue.Handle(s.Queue, s.workMerged)
	queue.Handle(s.Queue, s.workRebase, queue.Timeout(claimAge))
	queue.Handle(s.Queue, s.workAutoMerge)
	queue.Handle(s.Queue, s.workUnlinked)
}

// Pushed updates the merge requests of the pushed branches: it sets the head of
// those from a branch, resets the merge checks of those into it, and marks those
// that the push merged as merged.
func (s *Service) Pushed(ctx context.Context, tx *db.Tx, p repo.Push) error {
	userID := p.By.ID
	if p.By.Deploy != nil {
		userID = p.By.Deploy.UserID
	}
	var l landing
	if p.About != "" {
		if err := json.Unmarshal([]byte(p.About), &l); err != nil {
			return err
		}
	}
	if l.RequestID != 0 {
		if err := s.landed(ctx, tx, p, l); err != nil {
			return err
		}
	}
	for _, c := range p.Changes {
		branch, ok := strings.CutPrefix(c.Ref, git.Heads)
		if !ok {
			continue
		}
		if c.New != git.ZeroOID {
			if err := s.pushedFrom(ctx, tx, p.Project.ID, branch, string(c.New), userID, l.Rebased); err != nil {
				return err
			}
		}
		into, err := uncheck(ctx, tx, p.Project.ID, branch)
		if err != nil {
			return err
		}
		if c.New != git.ZeroOID && (into || branch == p.Project.DefaultBranch && l.RequestID == 0) {
			w := landedWork{ProjectID: p.Project.ID, UserID: userID, Branch: branch, Old: string(c.Old), New: string(c.New), Merge: l.RequestID != 0}
			if err := s.Queue.Add(ctx, tx, w, queue.In(lane)); err != nil {
				return err
			}
		}
	}
	return nil
}

// pushedFrom sets the new head of the open merge requests from a branch. rebased is
// the ID of the merge request that the push rebased without changing what would be
// merged; it keeps its approvals.
func (s *Service) pushedFrom(ctx context.Context, tx *db.Tx, projectID int64, branch, head string, userID, rebased int64) error {
	list, err := findFromBranch(ctx, tx, projectID, branch)
	if err != nil {
		return err
	}
	for _, found := range list {
		m, err := lockRequest(ctx, tx, found.ID)
		if errs.Is(err, errs.KindNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if m.State != Opened || m.Head == head { // already recorded
			continue
		}
		was := m.Head
		m.Head, m.UpdatedAt, m.check, m.MergeError = head, s.Now(), check{}, ""
		if m.autoMerge != "" {
			m.AutoMergeByID, m.autoMerge = nil, ""
			if err := s.Plan.AddSystemNote(ctx, tx, actor.Actor{ID: userID}, m.Target(), m.IID, m.ProjectID, "aborted the automatic merge because source branch was updated"); err != nil {
				return err
			}
		}
		if err := saveRequest(ctx, tx, m); err != nil {
			return err
		}
		if m.ID != rebased {
			if err := s.resetOnPush(ctx, tx, actor.Actor{ID: userID}, m, byPush); err != nil {
				return err
			}
		}
		if err := s.addVersion(ctx, tx, m, &userID, was); err != nil {
			return err
		}
		if err := s.Events.Changed.Publish(ctx, tx, Change{Request: m, Kind: HeadChanged, By: userID, OldHead: was}); err != nil {
			return err
		}
		if err := s.Plan.NotifyOf(ctx, tx, userID, &m.Issuable, notify.PushToMergeRequest, notify.Details{To: head}); err != nil {
			return err
		}
	}
	return nil
}

// landing identifies the merge request that a push merges or rebases. It is stored
// as JSON in the push journal (About).
type landing struct {
	RequestID int64  `json:"merge_request_id"`  // 0: none is merged
	Rebased   int64  `json:"rebased,omitempty"` // its changes are the same
	Branch    string `json:"branch,omitempty"`  // the branch it was merged into; empty in journals of earlier versions
	Head      string `json:"head"`              // the merged commit; the source branch may have newer ones
	Merge     string `json:"merge,omitempty"`
	Squash    string `json:"squash,omitempty"`
	Remove    bool   `json:"remove,omitempty"` // delete the source branch
}

// landed marks the merge request that a push merged as merged.
func (s *Service) landed(ctx context.Context, tx *db.Tx, p repo.Push, l landing) error {
	m, err := lockRequest(ctx, tx, l.RequestID)
	if err != nil {
		return ignoreRefusal(err) // it was deleted; the commits are in the branch nevertheless
	}
	return s.finishMerge(ctx, tx, m, p.By.ID, l)
}

// finishMerge marks a merge request as merged, adds a system note, an activity event
// and notifications, and adds the background job mergedWork.
func (s *Service) finishMerge(ctx context.Context, tx *db.Tx, m *MergeRequest, userID int64, l landing) error {
	if m.State == Merged {
		return nil
	}
	was := *m
	now := s.Now()
	m.Head = l.Head
	if l.Branch != "" {
		m.TargetBranch = l.Branch // it may have been changed after the claim of the merge had expired
	}
	m.State, m.MergedAt, m.MergeCommit, m.SquashCommit = Merged, &now, l.Merge, l.Squash
	m.UpdatedAt, m.MergeError, m.AutoMergeByID, m.autoMerge = now, "", nil, ""
	m.ClosedAt, m.ClosedByID = nil, nil
	if userID > 0 {
		m.MergedByID = &userID
	}
	if err := saveRequest(ctx, tx, m); err != nil {
		return err
	}
	if err := release(ctx, tx, "merging_at", m.ID, ""); err != nil {
		return err
	}
	by := actor.Actor{ID: userID}
	if err := s.Plan.RecordState(ctx, tx, userID, &m.Issuable, was.State); err != nil {
		return err
	}
	if err := s.Plan.AddSystemNote(ctx, tx, by, m.Target(), m.IID, m.ProjectID, "merged"); err != nil {
		return err
	}
	if err := s.record(ctx, tx, userID, m, activity.Merged); err != nil {
		return err
	}
	if err := s.Events.Changed.Publish(ctx, tx, Change{Request: m, Kind: StateChanged, By: userID, Was: &was}); err != nil {
		return err
	}
	if err := s.unblock(ctx, tx, m.ID); err != nil {
		return err
	}
	return s.Queue.Add(ctx, tx, mergedWork{ID: m.ID, UserID: userID, Remove: l.Remove}, queue.In(lane))
}

// landedWork is the background job that runs after a push to a branch, which may
// contain the heads of open merge requests and commits that close issues.
type landedWork struct {
	ProjectID int64  `json:"project_id"`
	UserID    int64  `json:"user_id"`
	Branch    string `json:"branch"`
	Old       string `json:"old"`
	New       string `json:"new"`
	Merge     bool   `json:"merge,omitempty"` // pushed by the merge of a merge request, which closes its issues itself
}

// Kind implements queue.Work.
func (landedWork) Kind() string { return "merge_landed" }

func (s *Service) workLanded(ctx context.Context, w landedWork) error {
	in, err := s.system(ctx, &w.ProjectID)
	if err != nil || in == nil {
		return err
	}
	list, err := findIntoBranch(ctx, s.DB, in.ID, w.Branch)
	if err != nil {
		return fmt.Errorf("merge requests into %s: %w", w.Branch, err)
	}
	for _, m := range list {
		if err := s.lookLanded(ctx, in, m, w); err != nil {
			return fmt.Errorf("merge request %d: %w", m.ID, err)
		}
	}
	if w.Branch == in.DefaultBranch && !w.Merge {
		return s.closeByCommits(ctx, in, w)
	}
	return nil
}

// lookLanded marks a merge request as merged if a push added its head to the target
// branch. A head that the branch already contained does not count.
func (s *Service) lookLanded(ctx context.Context, in *project.Project, m *MergeRequest, w landedWork) error {
	if w.Old == string(git.ZeroOID) {
		return nil
	}
	has, err := s.Repos.Has(ctx, in, git.OID(w.New), git.OID(m.Head))
	if err != nil || !has {
		return err
	}
	had, err := s.Repos.Has(ctx, in, git.OID(w.Old), git.OID(m.Head))
	if err != nil || had {
		return err
	}
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		now, err := lockRequest(ctx, tx, m.ID)
		if err != nil {
			return ignoreRefusal(err)
		}
		if now.State != Opened || now.Head != m.Head {
			return nil
		}
		return s.finishMerge(ctx, tx, now, w.UserID, landing{RequestID: m.ID, Head: m.Head})
	})
}
