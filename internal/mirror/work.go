package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/gitremote"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/repo"
)

// importWork is the background job of one run of an import.
type importWork struct {
	ProjectID int64  `json:"project_id"`
	Run       string `json:"run"`
}

// Kind implements queue.Work.
func (importWork) Kind() string { return "mirror_import" }

// errCanceled ends a run that is not the current run of its project.
var errCanceled = errors.New("the import was canceled")

// saveEvery is how often the progress is saved and cancellation is checked.
const saveEvery = time.Second

func (s *Service) work(ctx context.Context, w importWork) error {
	i, err := findImport(ctx, s.DB, w.ProjectID)
	if err != nil && !errors.Is(err, db.ErrNoRows) {
		return err
	}
	if err == nil {
		end := s.takePlace(i.UserID)
		if end == nil {
			return queue.PostponeTurn(maxActive)
		}
		defer end()
	}
	return s.Run(ctx, w.ProjectID, w.Run)
}

// Run imports a repository, for the background job. It does nothing if the run is
// not the current run of the project. An interrupted run starts from the beginning:
// nothing is visible until the import is complete.
func (s *Service) Run(ctx context.Context, projectID int64, run string) error {
	p, err := s.Projects.Require(ctx, actor.System(), project.RefTo(projectID), project.NoAccess)
	if err != nil {
		return err // deleted in the meantime
	}
	i, err := findImport(ctx, s.DB, projectID)
	if errors.Is(err, db.ErrNoRows) { // the user was deleted
		return s.finish(ctx, &Import{ProjectID: p.ID, Run: run}, project.ImportFailed, "The user who started the import was deleted.")
	}
	if err != nil || i.Run != run || !i.Active {
		return err
	}
	err = s.run(ctx, p, i)
	var failure *gitremote.Failure
	refusal, refused := errs.As(err)
	switch {
	case err == nil:
		return s.finish(ctx, i, project.ImportFinished, "")
	case errors.Is(err, errCanceled):
		return nil
	case errors.Is(err, errAwaitKey):
		return queue.Postpone(max(keyPause, s.Now().Sub(i.CreatedAt)/10))
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return s.finish(context.WithoutCancel(ctx), i, project.ImportFailed, fmt.Sprintf("The import took longer than %d hours.", int(maxTime.Hours())))
	case ctx.Err() != nil:
		return err // the node is shutting down; another node retries
	case errors.As(err, &failure):
		s.Log.InfoContext(ctx, "an import failed", "project", p.ID, "error", failure.Text)
		return s.finish(ctx, i, project.ImportFailed, failure.Text)
	case refused && refusal.Kind != errs.KindUnavailable && refusal.Kind != errs.KindConflict:
		return s.finish(ctx, i, project.ImportFailed, refusal.Error())
	}
	// An internal error. The queue retries the job; the last attempt ends the
	// import.
	if attempts, countErr := addAttempt(ctx, s.DB, i.ID); countErr == nil && attempts >= maxAttempts {
		return errors.Join(err, s.finish(ctx, i, project.ImportFailed, "The import failed because of an internal error. Please try again."))
	}
	return err
}

const maxAttempts = 3

// finish records the end of a run, unless it was canceled.
func (s *Service) finish(ctx context.Context, i *Import, status project.ImportStatus, failure string) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "projects", i.ProjectID); err != nil {
			return db.NotFound(err, "Project")
		}
		now, err := findImport(ctx, tx, i.ProjectID)
		if err != nil && !errors.Is(err, db.ErrNoRows) {
			return err
		}
		if err == nil && (now.Run != i.Run || !now.Active) {
			return nil
		}
		return s.end(ctx, tx, i, status, failure)
	})
	if err != nil {
		return fmt.Errorf("end import of project %d: %w", i.ProjectID, err)
	}
	return nil
}

// run fetches the repository.
func (s *Service) run(ctx context.Context, p *project.Project, i *Import) error {
	by, err := s.Users.As(ctx, i.UserID)
	if err != nil {
		return errs.Invalid("The account of the user who started the import is not active.").Because(err)
	}
	c, err := s.opened(i)
	if err != nil {
		return err
	}
	remote, err := s.open(ctx, p.ImportURL, c)
	if err != nil {
		return err
	}
	defer remote.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t := &tracker{service: s, now: *i, cancel: cancel}
	if err := t.start(ctx); err != nil {
		return err
	}
	defer t.follow(ctx)()
	err = s.take(ctx, by, p, remote, t)
	if errors.Is(context.Cause(ctx), errCanceled) {
		return errCanceled
	}
	if c.PrivateKey != "" && errors.Is(err, gitremote.ErrCredentials) && s.Now().Sub(i.CreatedAt) < keyTime {
		if err := t.save(ctx, AwaitKey); err != nil {
			return err
		}
		return errAwaitKey
	}
	return err
}

// errAwaitKey ends an attempt if the source does not accept the SSH key yet.
var errAwaitKey = errors.New("the source does not take the SSH key")

// An import with an SSH key waits up to keyTime until the source accepts the key. It
// retries every keyPause at first, then less often.
const (
	keyTime  = time.Hour
	keyPause = 10 * time.Second
)

// take fetches the repository of a remote into a project.
func (s *Service) take(ctx context.Context, by actor.Actor, p *project.Project, remote *gitremote.Remote, t *tracker) error {
	refs, err := remote.Refs(ctx)
	if err != nil {
		return err
	}
	importable := repo.Importable(refs.List)
	t.count(importable)
	if p, err = s.Projects.Require(ctx, actor.System(), project.RefTo(p.ID), project.NoAccess); err != nil {
		return err
	}
	return s.Repos.Import(ctx, by, p, repo.Incoming{
		Refs: importable, Head: refs.Head, MaxSize: func(ctx context.Context) (int64, error) { return s.LFS.Room(ctx, p) },
		Pack: func(ctx context.Context, want, have []git.OID) (io.ReadCloser, error) {
			pack, err := remote.Pack(ctx, refs, want, have)
			if err != nil {
				return nil, err
			}
			t.set(Receiving, 0)
			return &countingReader{pack, t}, nil
		},
		Progress: func(done, total uint32) {
			if total > 0 {
				t.percent(int(uint64(done) * 100 / uint64(total)))
			}
		},
		Check: func(ctx context.Context, r git.Repo, changes []*git.RefChange) error {
			t.set(Checking, 0)
			if err := s.takeLFS(ctx, p, remote, r, changes, t); err != nil {
				return err
			}
			return t.save(ctx, Saving)
		},
	})
}

// takeLFS fetches the LFS objects that the new commits of a repository refer to.
// Objects that the source does not have or does not serve over HTTP are skipped.
func (s *Service) takeLFS(ctx context.Context, p *project.Project, remote *gitremote.Remote, r git.Repo, changes []*git.RefChange, t *tracker) error {
	enabled, err := s.LFS.Enabled(ctx, p)
	if err != nil || !enabled {
		return err
	}
	missing, err := s.LFS.Missing(ctx, p, r, changes)
	if err != nil || len(missing) == 0 {
		return err
	}
	t.lfs(len(missing), 0)
	if !remote.HTTP() {
		return nil // LFS objects are fetched over HTTP only
	}
	t.set(FetchLFS, 0)
	return s.LFS.Fetch(ctx, p, remote, missing, func(done, fetched int) {
		t.lfs(len(missing), fetched)
		t.percent(done * 100 / len(missing))
	})
}

// tracker saves the progress of an import, and stops the import when it was
// canceled.
type tracker struct {
	service *Service
	cancel  context.CancelCauseFunc

	mu  sync.Mutex
	now Import
}

func (t *tracker) set(phase Phase, percent int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now.Phase, t.now.Percent = phase, percent
}

func (t *tracker) percent(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now.Percent = n
}

func (t *tracker) received(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now.Bytes += int64(n)
}

func (t *tracker) lfs(found, fetched int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now.LFSFound, t.now.LFSFetched = found, fetched
}

func (t *tracker) count(refs []git.Ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now.Branches, t.now.Tags = 0, 0
	for _, ref := range refs {
		if strings.HasPrefix(ref.Name, git.Heads) {
			t.now.Branches++
		} else {
			t.now.Tags++
		}
	}
}

// start records that the run has started.
func (t *tracker) start(ctx context.Context) error {
	t.now.Bytes = 0
	t.set(Connecting, 0)
	return t.service.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "projects", t.now.ProjectID); err != nil {
			return err
		}
		if err := saveProgress(ctx, tx, t.now); errors.Is(err, db.ErrNoRows) {
			return errCanceled
		} else if err != nil {
			return err
		}
		return t.service.Projects.ImportChanged(ctx, tx, t.now.ProjectID, project.ImportStarted, "")
	})
}

// save saves the progress now. It returns errCanceled if the run was canceled.
func (t *tracker) save(ctx context.Context, phase Phase) error {
	t.mu.Lock()
	if phase != "" {
		t.now.Phase, t.now.Percent = phase, 0
	}
	now := t.now
	t.mu.Unlock()
	err := saveProgress(ctx, t.service.DB, now)
	if errors.Is(err, db.ErrNoRows) {
		t.cancel(errCanceled)
		return errCanceled
	}
	return err
}

// follow saves the progress periodically until stop is called.
func (t *tracker) follow(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var ended sync.WaitGroup
	ended.Go(func() {
		pause := time.NewTicker(saveEvery)
		defer pause.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-pause.C:
				_ = t.save(ctx, "") // the next tick retries
			}
		}
	})
	return func() {
		cancel()
		ended.Wait()
		_ = t.save(context.WithoutCancel(ctx), "") // the progress is only displayed
	}
}

// countingReader counts the received bytes.
type countingReader struct {
	io.ReadCloser
	t *tracker
}

// Read implements io.Reader.
func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	c.t.received(n)
	return n, err
}
