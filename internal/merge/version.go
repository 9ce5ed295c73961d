package merge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/plan/diffnote"
	"svc/internal/project"
	"svc/internal/queue"
)

// Version is a diff version of a merge request, created by a push.
type Version struct {
	ID        int64
	RequestID int64
	Head      string
	Base      string // merge base of source and target; empty for unrelated histories
	Start     string // head of the target at that time; empty if it did not exist
	Files     int64  // number of changed files
	CreatedAt time.Time

	authorID *int64 // the user who pushed; nil if no one is notified
	was      string // the previous head
}

// Versions lists the versions of a merge request, newest first, for users who
// can see it. NotFound.
func (s *Service) Versions(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, p db.Paging) (db.Page[*Version], error) {
	_, m, err := s.opened(ctx, by, ref, iid)
	if err != nil {
		return db.Page[*Version]{}, err
	}
	page, err := listVersions(ctx, s.DB, m.ID, p)
	if err != nil {
		return page, fmt.Errorf("versions of merge request %d: %w", m.ID, err)
	}
	return page, nil
}

// opened is like current, with Version set.
func (s *Service) opened(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) (*project.Project, *MergeRequest, error) {
	in, m, err := s.current(ctx, by, ref, iid)
	if err != nil {
		return nil, nil, err
	}
	m.Version, err = newestVersion(ctx, s.DB, m.ID)
	if errors.Is(err, db.ErrNoRows) {
		m.Version, err = &Version{Head: m.Head}, nil
	}
	return in, m, err
}

// Contents is a version with its commits and diffs.
type Contents struct {
	Project *project.Project
	Request *MergeRequest
	Version *Version
	From    *Version             // the version to compare with; nil for the base
	Commits db.Page[*git.Commit] // newest first
	Diff    *git.Diff
}

// Part is a part of a version to read.
type Part struct {
	VersionID int64  // 0: the newest
	FromHead  string // compare with the version with this head; empty: with the base
	Commits   bool
	Paging    db.Paging // for the commits
	Diff      bool
	Options   git.DiffOptions
}

// Contents returns a version of a merge request with the requested parts, for users
// who can see it. NotFound.
func (s *Service) Contents(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, want Part) (*Contents, error) {
	in, m, err := s.opened(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	c := &Contents{Project: in, Request: m, Version: m.Version}
	if want.VersionID != 0 {
		if c.Version, err = findVersion(ctx, s.DB, m.ID, want.VersionID); err != nil {
			return nil, db.NotFound(err, "Merge Request")
		}
	}
	base, head := git.OID(c.Version.Base), git.OID(c.Version.Head)
	if want.Commits {
		if c.Commits, err = s.Repos.CommitsOf(ctx, in, base, head, want.Paging); err != nil {
			return nil, fmt.Errorf("commits of merge request %d: %w", m.ID, err)
		}
	}
	if want.FromHead != "" {
		if c.From, err = findVersionByHead(ctx, s.DB, m.ID, want.FromHead); err != nil {
			return nil, db.NotFound(err, "Version")
		}
		base = git.OID(c.From.Head)
	}
	if want.Diff {
		if c.Diff, err = s.Repos.DiffOf(ctx, in, base, head, want.Options); err != nil {
			return nil, fmt.Errorf("changes of merge request %d: %w", m.ID, err)
		}
	}
	return c, nil
}

// CommitCount counts the commits of a merge request that was read for the actor.
func (s *Service) CommitCount(ctx context.Context, m *MergeRequest) (int, error) {
	in, err := s.system(ctx, &m.ProjectID)
	if err != nil || in == nil || m.Version == nil {
		return 0, err
	}
	page, err := s.Repos.CommitsOf(ctx, in, git.OID(m.Version.Base), git.OID(m.Version.Head), db.Paging{Limit: 1, Totals: true})
	if errs.Is(err, errs.KindNotFound) {
		return 0, nil
	}
	return page.Total, err
}

// fileDiff returns the diff, with all lines, of the file of a position in a version
// of the merge request. It sets both paths of the position. NotFound.
func (s *Service) fileDiff(ctx context.Context, in *project.Project, m *MergeRequest, p *diffnote.Position) (*git.FileDiff, error) {
	known, err := hasVersion(ctx, s.DB, m.ID, p.BaseSHA, p.StartSHA, p.HeadSHA)
	if err != nil {
		return nil, fmt.Errorf("versions of merge request %d: %w", m.ID, err)
	}
	if !known {
		return nil, errs.NotFound("Version")
	}
	base, head := git.OID(p.BaseSHA), git.OID(p.HeadSHA)
	// A diff without lines is cheap to compute, and contains renames.
	d, err := s.Repos.DiffOf(ctx, in, base, head, git.DiffOptions{MaxFiles: 1, MaxLines: 1})
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(d.Files, func(f git.FileDiff) bool { return f.NewPath == p.NewPath || f.OldPath == p.OldPath })
	if at < 0 {
		return nil, errs.NotFound("File")
	}
	p.OldPath, p.NewPath = d.Files[at].OldPath, d.Files[at].NewPath
	// Unchanged lines can have comments too. In a file that is too large, only
	// lines near a change can.
	const whole, near = 1 << 20, 3
	for _, lines := range []int{whole, near} {
		o := git.DiffOptions{Paths: []string{p.OldPath, p.NewPath}, Context: lines, MaxFiles: 2, MaxLines: 1 << 20}
		if d, err = s.Repos.DiffOf(ctx, in, base, head, o); err != nil {
			return nil, err
		}
		if at = slices.IndexFunc(d.Files, func(f git.FileDiff) bool { return f.NewPath == p.NewPath }); at < 0 {
			return nil, errs.NotFound("File")
		}
		if !d.Files[at].TooLarge {
			break
		}
	}
	return &d.Files[at], nil
}

// collectWork is the background job that collects the data of new versions of a
// merge request from git.
type collectWork struct {
	ID int64 `json:"id"`
}

// Kind implements queue.Work.
func (collectWork) Kind() string { return "merge_collect" }

func (s *Service) workCollect(ctx context.Context, w collectWork) error {
	if err := s.collect(ctx, w.ID); err != nil {
		return ignoreRefusal(err) // the merge request was deleted in the meantime
	}
	// A process may have been killed after collecting the version but before
	// updating the ref.
	if err := s.showHead(ctx, w.ID); err != nil {
		return ignoreRefusal(err)
	}
	if err := s.repairHead(ctx, w.ID); err != nil {
		return ignoreRefusal(err)
	}
	if err := s.moveNotes(ctx, w.ID); err != nil {
		return ignoreRefusal(err)
	}
	return s.workCheck(ctx, checkWork(w)) // updates the mergeability in lists
}

// collect fetches the commits of new versions into the target project and saves
// their data. It runs in the background job, or earlier when a user reads the
// merge request.
func (s *Service) collect(ctx context.Context, id int64) error {
	pending, err := findPending(ctx, s.DB, id)
	if err != nil {
		return fmt.Errorf("new versions of merge request %d: %w", id, err)
	}
	if len(pending) == 0 {
		return nil
	}
	m, err := findRequestByID(ctx, s.DB, id)
	if err != nil {
		return db.NotFound(err, "Merge Request")
	}
	target, err := s.system(ctx, &m.ProjectID)
	if err != nil {
		return err
	}
	if target == nil {
		return errs.NotFound("Merge Request")
	}
	source, err := s.system(ctx, m.SourceProjectID)
	if err != nil {
		return err
	}
	// Continue if the client disconnects: the ref has moved, and the rows must
	// match it.
	ctx = context.WithoutCancel(ctx)
	for _, v := range pending {
		if err := s.collectVersion(ctx, target, source, m, v); err != nil {
			return fmt.Errorf("version %d of merge request %d: %w", v.ID, m.ID, err)
		}
	}
	return ignoreRefusal(s.showHead(ctx, id))
}

// repairHead sets the head of an open merge request to the commit of its source
// branch, if pushes were recorded in a different order than they updated the branch,
// by two nodes or after a crash, or if a push was recorded after the head of a new or
// reopened merge request had been read and before it was saved. An unknown commit may
// also belong to a push that has not been recorded yet; then the job runs again later.
func (s *Service) repairHead(ctx context.Context, id int64) error {
	m, err := findRequestByID(ctx, s.DB, id)
	if err != nil {
		return db.NotFound(err, "Merge Request")
	}
	if m.State != Opened {
		return nil
	}
	head, err := s.sourceHead(ctx, m)
	if err != nil || head == "" || string(head) == m.Head {
		return err
	}
	// Read after the head: when a push that updated it is no longer in progress, it has
	// been recorded.
	unrecorded, err := s.Repos.Pushing(ctx, *m.SourceProjectID, git.Heads+m.SourceBranch)
	if err != nil {
		return err
	}
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		now, err := lockRequest(ctx, tx, id)
		if err != nil {
			return err
		}
		known, err := hadHead(ctx, tx, id, string(head))
		if err != nil || now.State != Opened || now.Head != m.Head {
			return err
		}
		if !known && unrecorded {
			return s.Queue.Add(ctx, tx, collectWork{id}, queue.In(lane), queue.Delay(repairAgain))
		}
		now.Head, now.UpdatedAt, now.check = string(head), s.Now(), check{}
		now.AutoMergeByID, now.autoMerge = nil, ""
		if err := saveRequest(ctx, tx, now); err != nil {
			return err
		}
		// The approvals may be for the other commit.
		if err := s.resetOnPush(ctx, tx, actor.Actor{ID: now.AuthorID}, now, byPush); err != nil {
			return err
		}
		return s.addVersion(ctx, tx, now, nil, m.Head)
	})
}

// repairAgain is how long repairHead waits for a push to be recorded.
const repairAgain = 15 * time.Second

// showHead sets the head ref of a merge request to its newest collected
// version. NotFound.
func (s *Service) showHead(ctx context.Context, id int64) error {
	m, err := findRequestByID(ctx, s.DB, id)
	if err != nil {
		return db.NotFound(err, "Merge Request")
	}
	target, err := s.system(ctx, &m.ProjectID)
	if err != nil || target == nil {
		return err
	}
	err = s.Repos.ShowHead(ctx, target, m.IID, func() (git.OID, error) {
		v, err := newestVersion(ctx, s.DB, id)
		if err != nil {
			return "", db.NotFound(err, "Merge Request")
		}
		return git.OID(v.Head), nil
	})
	if err != nil {
		return fmt.Errorf("show the head of merge request %d: %w", id, err)
	}
	return nil
}

func (s *Service) collectVersion(ctx context.Context, target, source *project.Project, m *MergeRequest, v *Version) error {
	var commits []*git.Commit
	err := s.Repos.Adopt(ctx, target, source, git.OID(v.Head))
	if err == nil {
		commits, err = s.measure(ctx, target, m, v)
	}
	if err != nil && !errs.Is(err, errs.KindNotFound) { // a missing commit was overwritten by another push
		return err
	}
	named, err := s.namedIssues(ctx, target, m, commits)
	if err != nil {
		return err
	}
	committers, err := s.committersOf(ctx, target, v, commits)
	if err != nil {
		return err
	}
	owners, err := s.ownersPushed(ctx, target, m, v)
	if err != nil {
		return err
	}
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		now, err := lockRequest(ctx, tx, m.ID)
		if err != nil {
			return err
		}
		if ok, err := collectVersion(ctx, tx, v); err != nil || !ok {
			return err
		}
		if now.PreparedAt == nil {
			at := s.Now()
			now.PreparedAt = &at
			if err := saveRequest(ctx, tx, now); err != nil {
				return err
			}
		}
		newest, err := newestVersion(ctx, tx, m.ID)
		if err != nil {
			return err
		}
		if newest.ID == v.ID { // else a newer version was collected concurrently
			if err := saveIssues(ctx, tx, m.ID, named); err != nil {
				return err
			}
			if err := saveCommits(ctx, tx, m.ID, commits); err != nil {
				return err
			}
			if err := saveCommitters(ctx, tx, m.ID, committers); err != nil {
				return err
			}
		}
		by := now.AuthorID
		if v.authorID != nil {
			by = *v.authorID
			if text := pushText(commits, v); text != "" {
				if err := s.Plan.AddSystemNote(ctx, tx, actor.Actor{ID: by}, m.Target(), m.IID, m.ProjectID, text); err != nil {
					return err
				}
			}
		}
		if err := s.dropApprovals(ctx, tx, actor.Actor{ID: by}, now, owners, byPush); err != nil {
			return err
		}
		now.Version = v
		return s.Events.Changed.Publish(ctx, tx, Change{Request: now, Kind: Collected, By: by})
	})
}

// measure sets the base, the start and the number of files of a version, and
// returns its commits.
func (s *Service) measure(ctx context.Context, target *project.Project, m *MergeRequest, v *Version) ([]*git.Commit, error) {
	start, err := s.tip(ctx, target, m.TargetBranch)
	if err != nil {
		return nil, err
	}
	v.Start = string(start)
	if start == "" { // without a target, all commits would be new
		v.Base = v.Head
		return nil, nil
	}
	span, err := s.Repos.Span(ctx, target, start, git.OID(v.Head))
	if err != nil {
		return nil, err
	}
	v.Base, v.Files = string(span.Base), int64(span.Files)
	page, err := s.Repos.CommitsOf(ctx, target, span.Base, git.OID(v.Head), db.Paging{Limit: maxRead})
	return page.Items, err
}

// maxRead is the maximum number of commits of a version that are read.
const maxRead = 200

// pushText returns the text of the system note about the commits of a push.
func pushText(commits []*git.Commit, v *Version) string {
	if v.was == v.Head { // only the target changed
		return ""
	}
	var fresh []string
	for _, c := range commits {
		if string(c.ID) == v.was {
			break
		}
		fresh = append(fresh, fmt.Sprintf("* %s - %s", c.ID[:8], c.Title))
	}
	if len(fresh) == 0 {
		return ""
	}
	const shown = 20
	word, more := "commits", ""
	if len(fresh) == 1 {
		word = "commit"
	}
	n := len(fresh)
	if n > shown {
		fresh, more = fresh[:shown], fmt.Sprintf("\n* and %d more", n-shown)
	}
	return fmt.Sprintf("added %d %s\n\n%s%s", n, word, strings.Join(fresh, "\n"), more)
}

// Heads returns the latest heads of a merge request, newest first. The caller has
// checked access.
func (s *Service) Heads(ctx context.Context, m *MergeRequest) ([]string, error) {
	const most = 100
	page, err := listVersions(ctx, s.DB, m.ID, db.Paging{Limit: most})
	if err != nil {
		return nil, fmt.Errorf("versions of merge request %d: %w", m.ID, err)
	}
	heads := []string{m.Head}
	for _, v := range page.Items {
		heads = append(heads, v.Head)
	}
	return heads, nil
}

// ByID returns a merge request by its ID to users who can see it, for
// background jobs of other features. NotFound.
func (s *Service) ByID(ctx context.Context, by actor.Actor, id int64) (*MergeRequest, error) {
	m, err := findRequestByID(ctx, s.DB, id)
	if err != nil {
		return nil, db.NotFound(err, "Merge Request")
	}
	return s.Get(ctx, by, project.RefTo(m.ProjectID), m.IID)
}
