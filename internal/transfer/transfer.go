// Package transfer exports and imports groups and projects: it writes a group with its
// subgroups, or a project, to a file, and creates one from such a file. The formats are
// described in docs/user/group-export.md and docs/user/project-export.md. It also reads
// groups and projects from other servers, and makes such files of them.
package transfer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"svc/internal/actor"
	"svc/internal/badge"
	"svc/internal/blob"
	"svc/internal/board"
	"svc/internal/codesearch"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/lfs"
	"svc/internal/limit"
	"svc/internal/mail"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/repo"
	"svc/internal/repo/pushrule"
	"svc/internal/secret"
	"svc/internal/setting"
	"svc/internal/transfer/remote"
	"svc/internal/upload"
	"svc/internal/user"
	"svc/internal/wiki"
)

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Queue    *queue.Queue
	Keys     *secret.Keyring
	Blobs    blob.Store
	Settings *setting.Service
	Users    *user.Service
	Projects *project.Service
	Plan     *plan.Service
	Boards   *board.Service
	Badges   *badge.Service
	Wikis    *wiki.Service
	Content  Content
	Mail     *mail.Sender
	Log      *slog.Logger
	Now      func() time.Time
	TempDir  string // directory for the part of a file that is being written
	Limits   remote.Limits
	// S3Endpoint replaces that of AWS, for imports from S3; empty except in tests.
	S3Endpoint string
}

// Content are the services for content that only projects have.
type Content struct {
	Repos     *repo.Service
	PushRules *pushrule.Service
	Uploads   *upload.Service
	LFS       *lfs.Service
	Code      *codesearch.Service
}

// Service exports and imports groups and projects.
type Service struct {
	Deps
	turns    turns
	listings *limit.Share // of the groups and projects of sources, while a request waits
}

const (
	// lane is the queue lane of exports and imports, which may take long.
	lane = "transfer"
	// remoteLane is that of files that are fetched from or sent to servers of users, and of
	// the projects of bulk imports, whose LFS objects are fetched. If these servers are slow,
	// other exports and imports go on.
	remoteLane = "transfer_remote"
)

// maxTries is the maximum number of attempts of an export or import, including
// attempts that ended with the process.
const maxTries = 5

// New returns the service and registers its background jobs.
func New(d Deps) *Service {
	s := &Service{Deps: d, listings: limit.NewShare("lists of other servers", limit.ShareLimits{Total: 8, PerUser: 2, Wait: 10 * time.Second})}
	d.Queue.Lane(lane, workers)
	d.Queue.Lane(remoteLane, workers)
	handleInTurn(s, lane, tablesOf(false).exports, func(w ExportWork) int64 { return w.ExportID }, s.RunExport)
	handleInTurn(s, lane, tablesOf(false).imports, func(w ImportWork) int64 { return w.ImportID }, s.RunImport)
	handleInTurn(s, lane, tablesOf(true).exports, func(w ProjectExportWork) int64 { return w.ExportID }, s.RunProjectExport)
	handleInTurn(s, remoteLane, tablesOf(true).exports, func(w ProjectUploadWork) int64 { return w.ExportID }, s.RunProjectUpload)
	handleInTurn(s, lane, tablesOf(true).imports, func(w ProjectImportWork) int64 { return w.ImportID }, s.RunProjectImport)
	handleInTurn(s, remoteLane, tablesOf(true).imports, func(w EntityImportWork) int64 { return w.ImportID }, s.RunEntityImport)
	handleInTurn(s, remoteLane, tablesOf(true).imports, func(w RemoteImportWork) int64 { return w.ImportID }, s.RunRemoteImport)
	d.Queue.Lane(bulkLane, workers)
	queue.Handle(d.Queue, inTurn(s, bulkLane, s.RunBulkImport, s.userOfEntity, s.waitingEntities), queue.Timeout(24*time.Hour))
	d.Queue.Every("transfer_sweep", time.Hour, s.Sweep)
	return s
}

// State is the state of an export or import.
type State string

// The states, in their order. Each can be followed by Failed, except Finished.
const (
	Uploading State = "uploading" // of an import: its file is being uploaded
	Queued    State = "queued"
	Started   State = "started"
	Finished  State = "finished"
	Failed    State = "failed"
)

// percent returns the progress. It is 100 only when all is done.
func percent(s State, done, total int64) int {
	switch {
	case s == Finished:
		return 100
	case total <= 0 || done <= 0:
		return 0
	}
	return int(min(99, done*100/total))
}

// as returns the actor for work on behalf of a user: NotFound if they were deleted,
// Forbidden if their account may not be used.
func (s *Service) as(ctx context.Context, userID *int64) (actor.Actor, error) {
	if userID == nil {
		return actor.Actor{}, errs.NotFound("User")
	}
	return s.Users.As(ctx, *userID)
}

// task is an export or import that is run.
type task struct {
	name  string
	tries *int64
	begin func(ctx context.Context) error // counts an attempt
	do    func(ctx context.Context) error
	fail  func(ctx context.Context, why string) error
}

// errEnded means that a task was canceled while it ran.
var errEnded = errors.New("the task was canceled")

// run runs a task. Every attempt starts again: the output of an earlier one, which
// no one has seen, is replaced or removed. A refusal ends the task, and so does the
// last attempt; after other errors the queue retries, and after a stop of the node
// it runs again later.
func (s *Service) run(ctx context.Context, t task) error {
	if *t.tries++; *t.tries > maxTries {
		return t.fail(ctx, internalFault)
	}
	err := t.begin(ctx)
	if errors.Is(err, errEnded) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("start %s: %w", t.name, err)
	}
	err = t.do(ctx)
	if errors.Is(err, errEnded) {
		return nil
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	if why, ok := refused(err); ok {
		return t.fail(ctx, why)
	}
	if *t.tries >= maxTries {
		why := internalFault
		if f, ok := errors.AsType[*remote.Failure](err); ok {
			why = f.Text
		}
		err = fmt.Errorf("%w, and it was given up: %w", err, t.fail(ctx, why))
	}
	return fmt.Errorf("%s: %w", t.name, err)
}

// refused returns the reason of an error that a retry will not fix.
func refused(err error) (why string, ok bool) {
	if f, ok := errors.AsType[*remote.Failure](err); ok {
		return f.Text, !f.Temporary
	}
	e, ok := errors.AsType[*errs.Error](err)
	if !ok || e.Kind == errs.KindUnavailable {
		return "", false
	}
	if e.Kind == errs.KindForbidden && e.Text == "" {
		return "You may not do that any more.", true
	}
	shown := *e.Because(nil) // without what callers do not see
	return shown.Error(), true
}

// internalFault is the message for users about an error of the server.
const internalFault = "An internal error: it is in the log of the server."

// meter counts what is done, and saves the count from time to time.
type meter struct {
	done atomic.Int64
	stop context.CancelFunc
	end  chan struct{}
}

// measure saves a meter every second while it changes.
func (s *Service) measure(ctx context.Context, save func(ctx context.Context, done int64) error) *meter {
	ctx, cancel := context.WithCancel(ctx)
	m := &meter{stop: cancel, end: make(chan struct{})}
	go func() {
		defer close(m.end)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		var last int64
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			now := m.done.Load()
			if now == last {
				continue
			}
			if err := save(ctx, now); err != nil && ctx.Err() == nil {
				s.Log.WarnContext(ctx, "cannot save progress", "error", err)
			}
			last = now
		}
	}()
	return m
}

// close waits until the last save is complete.
func (m *meter) close() {
	m.stop()
	<-m.end
}
