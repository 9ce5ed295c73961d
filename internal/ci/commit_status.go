package ci

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/ci/flow"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/patch"
	"svc/internal/project"
	"svc/internal/repo"
	"svc/internal/user"
)

// CommitStatus is a status of a commit: a job, or an external status that was
// set through the API.
type CommitStatus struct {
	ID           int64
	Job          bool // ID is the ID of a job
	PipelineID   int64
	SHA          string
	Ref          string
	Stage        string
	Name         string
	State        flow.Status
	TargetURL    string
	Description  string
	Coverage     *float64
	AllowFailure bool
	AuthorID     *int64
	Author       *user.User // nil if the user was deleted
	CreatedAt    time.Time
	StartedAt    *time.Time
	FinishedAt   *time.Time
}

// outsideStage is the stage of external statuses.
const outsideStage = "external"

// StatusFilter selects commit statuses. The zero value selects the latest
// status of each name.
type StatusFilter struct {
	Ref        string
	Stage      string
	Name       string
	PipelineID int64
	All        bool // include replaced statuses
	ByPipeline bool // order by pipeline
	Desc       bool
}

// Statuses lists the statuses of a commit in the order of their creation, for
// users who can read the code of the project. Jobs are included for users who
// can see its pipelines. NotFound.
func (s *Service) Statuses(ctx context.Context, by actor.Actor, in project.Ref, rev string, f StatusFilter, pg db.Paging) (*project.Project, db.Page[*CommitStatus], error) {
	src, err := s.Repos.Source(ctx, by, in)
	if err != nil {
		return nil, db.Page[*CommitStatus]{}, err
	}
	c, err := src.Commit(ctx, rev)
	if err != nil {
		return nil, db.Page[*CommitStatus]{}, err
	}
	all, err := findStatuses(ctx, s.DB, by, src.Project, string(c.ID), f)
	if err != nil {
		return nil, db.Page[*CommitStatus]{}, fmt.Errorf("list statuses of %s: %w", c.ID, err)
	}
	slices.SortStableFunc(all, func(a, b *CommitStatus) int {
		order := cmp.Compare(a.ID, b.ID)
		if f.ByPipeline {
			order = cmp.Or(cmp.Compare(a.PipelineID, b.PipelineID), order)
		}
		if f.Desc {
			return -order
		}
		return order
	})
	page, err := db.Pick(all, pg, func(one *CommitStatus) (*CommitStatus, error) { return one, nil })
	if err != nil {
		return nil, page, err
	}
	return src.Project, page, s.fillStatusAuthors(ctx, page.Items...)
}

func (s *Service) fillStatusAuthors(ctx context.Context, list ...*CommitStatus) error {
	var ids []int64
	for _, one := range list {
		if one.AuthorID != nil {
			ids = append(ids, *one.AuthorID)
		}
	}
	users, err := s.Users.FindAll(ctx, ids)
	if err != nil {
		return fmt.Errorf("find authors: %w", err)
	}
	for _, one := range list {
		if one.AuthorID != nil {
			one.Author = users[*one.AuthorID]
		}
	}
	return nil
}

// NewStatus has the fields of a commit status; a nil field is not changed.
type NewStatus struct {
	State       flow.Status
	Ref         string // default: the ref of the newest pipeline of the commit, or the first branch that contains it
	Name        string // default: "default"
	PipelineID  int64  // default: the newest pipeline of the commit
	TargetURL   *string
	Description *string
	Coverage    *float64
}

// SetStatus sets an external status of a commit in its newest pipeline, or in a
// new one if the commit has no pipeline. It requires the Developer role and the
// permission to run pipelines on the ref. A status of the same name is updated
// if it has not ended or has the same state, else replaced. NotFound if there
// is no such commit or pipeline, or if no branch contains the commit and no ref
// is given.
func (s *Service) SetStatus(ctx context.Context, by actor.Actor, in project.Ref, rev string, n NewStatus) (*CommitStatus, error) {
	c, err := s.Projects.RequireChange(ctx, by, in, project.BuildsPart, project.Developer)
	if err != nil {
		return nil, err
	}
	src, err := s.Repos.Source(ctx, by, project.RefTo(c.ID))
	if err != nil {
		return nil, err
	}
	commit, err := src.Commit(ctx, rev)
	if err != nil {
		return nil, err
	}
	n.Ref = strings.TrimPrefix(strings.TrimPrefix(n.Ref, git.Heads), git.Tags)
	if n.Name == "" {
		n.Name = "default"
	}
	p, err := s.statusPipeline(ctx, by, src, string(commit.ID), n)
	if err != nil {
		return nil, err
	}
	may, err := src.MayRun(ctx, p.Ref, p.Tag)
	if err != nil {
		return nil, err
	}
	if !may {
		return nil, errs.Forbidden("")
	}
	var set *CommitStatus
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		set, err = s.saveStatus(ctx, tx, by, *p, n)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("set status of %s: %w", commit.ID, err)
	}
	return set, s.fillStatusAuthors(ctx, set)
}

// statusPipeline returns the pipeline of a new commit status. If there is none,
// it returns a pipeline without an ID, which the caller inserts.
func (s *Service) statusPipeline(ctx context.Context, by actor.Actor, src *repo.Source, sha string, n NewStatus) (*Pipeline, error) {
	p, err := findStatusPipeline(ctx, s.DB, src.Project.ID, sha, n.Ref, n.PipelineID)
	if err == nil || !errors.Is(err, db.ErrNoRows) {
		return p, err
	}
	if n.PipelineID != 0 {
		return nil, errs.NotFound("Pipeline for pipeline_id, sha and ref")
	}
	ref, tag := n.Ref, false
	if ref == "" {
		if ref, err = src.BranchWith(ctx, sha); err != nil {
			return nil, err
		}
	} else if found, err := src.Find(ctx, ref); err == nil {
		tag = found.Tag
	} else if !errs.Is(err, errs.KindNotFound) {
		return nil, err
	}
	p = &Pipeline{
		ProjectID: src.Project.ID, Status: flow.Created, Source: FromOutside, Ref: ref, Tag: tag, SHA: sha, BeforeSHA: string(git.ZeroOID),
		Stages: []string{outsideStage}, AutoCancel: NeverCancel, CreatedAt: s.Now(), UpdatedAt: s.Now(),
	}
	if by.ID > 0 {
		p.UserID = &by.ID
	}
	p.Protected, err = src.Protected(ctx, ref, tag)
	return p, err
}

func (s *Service) saveStatus(ctx context.Context, tx *db.Tx, by actor.Actor, p Pipeline, n NewStatus) (*CommitStatus, error) {
	if p.ID == 0 {
		// Concurrent requests must not create two pipelines.
		if err := tx.Lock(ctx, "projects", p.ProjectID); err != nil {
			return nil, err
		}
		made, err := findStatusPipeline(ctx, tx, p.ProjectID, p.SHA, p.Ref, 0)
		switch {
		case err == nil:
			p = *made
		case !errors.Is(err, db.ErrNoRows):
			return nil, err
		default:
			if err := insertPipeline(ctx, tx, &p, nil); err != nil {
				return nil, err
			}
		}
	}
	if err := tx.Lock(ctx, "pipelines", p.ID); err != nil {
		return nil, err
	}
	set, err := s.setStatus(ctx, tx, by, &p, n)
	if err != nil {
		return nil, err
	}
	if err := setOutside(ctx, tx, p.ID); err != nil {
		return nil, err
	}
	_, err = s.advance(ctx, tx, p.ID)
	return set, err
}

func (s *Service) setStatus(ctx context.Context, tx *db.Tx, by actor.Actor, p *Pipeline, n NewStatus) (*CommitStatus, error) {
	now := s.Now()
	was, err := findLatestStatus(ctx, tx, p.ID, n.Name)
	if err != nil && !errors.Is(err, db.ErrNoRows) {
		return nil, err
	}
	next := &CommitStatus{PipelineID: p.ID, SHA: p.SHA, Ref: p.Ref, Stage: outsideStage, Name: n.Name, AuthorID: &by.ID, CreatedAt: now}
	if err == nil && (!was.State.Done() || was.State == n.State) {
		next = was
	} else if err == nil {
		if err := retireStatus(ctx, tx, was.ID); err != nil {
			return nil, err
		}
	}
	next.become(n, now)
	if next.ID != 0 {
		return next, updateStatus(ctx, tx, next)
	}
	return next, insertStatus(ctx, tx, p.ProjectID, next)
}

// become sets the fields of the status to those of n.
func (s *CommitStatus) become(n NewStatus, now time.Time) {
	s.State = n.State
	patch.Set(&s.TargetURL, n.TargetURL)
	patch.Set(&s.Description, n.Description)
	if n.Coverage != nil {
		s.Coverage = n.Coverage
	}
	if s.StartedAt == nil && s.State != flow.Pending {
		s.StartedAt = &now
	}
	if s.FinishedAt == nil && s.State.Done() {
		s.FinishedAt = &now
	}
}

// CommitPipeline returns the newest pipeline of a commit in a project that the
// actor can see. Nil if there is none or the actor cannot see the pipelines of
// the project.
func (s *Service) CommitPipeline(ctx context.Context, by actor.Actor, in *project.Project, sha string) (*Pipeline, error) {
	if !in.MayRead(by, project.BuildsPart) {
		return nil, nil
	}
	list, err := s.newestOf(ctx, by, in, []string{sha})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list[0], nil
}

// CommitPipelines is CommitPipeline for many commits. The result is keyed by
// commit ID.
func (s *Service) CommitPipelines(ctx context.Context, by actor.Actor, in *project.Project, ids []string) (map[string]*Pipeline, error) {
	if len(ids) == 0 || !in.MayRead(by, project.BuildsPart) {
		return nil, nil
	}
	list, err := s.newestOf(ctx, by, in, ids)
	if err != nil {
		return nil, fmt.Errorf("find pipelines of commits: %w", err)
	}
	found := make(map[string]*Pipeline, len(list))
	for _, p := range list {
		found[p.SHA] = p
	}
	return found, nil
}

// newestOf returns the newest pipelines of commits.
func (s *Service) newestOf(ctx context.Context, by actor.Actor, in *project.Project, shas []string) ([]*Pipeline, error) {
	list, err := findNewestOf(ctx, s.DB, by, in, shas)
	if err != nil {
		return nil, err
	}
	return list, s.fillWarnings(ctx, list)
}
