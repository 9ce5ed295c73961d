// Package mirror copies repositories from and to other servers: imports by URL, and
// mirrors, which are updated on schedule and after pushes.
package mirror

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"svc/internal/db"
	"svc/internal/gitremote"
	"svc/internal/lfs"
	"svc/internal/outbound"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/repo"
	"svc/internal/secret"
	"svc/internal/setting"
	"svc/internal/user"
)

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Queue    *queue.Queue
	Keys     *secret.Keyring
	Settings *setting.Service
	Users    *user.Service
	Projects *project.Service
	Repos    *repo.Service
	LFS      *lfs.Service
	Log      *slog.Logger
	Now      func() time.Time
	// Stall is how long another server may send nothing; 0 means the default.
	Stall time.Duration
}

// Service imports and mirrors repositories.
type Service struct {
	Deps

	mu      sync.Mutex
	running map[int64]int // transfers on this node by user
}

// New returns the service and registers its background jobs.
func New(d Deps) *Service {
	s := &Service{Deps: d, running: map[int64]int{}}
	s.Queue.Lane(lane, workers)
	queue.Handle(s.Queue, s.work, queue.Timeout(maxTime))
	queue.Handle(s.Queue, s.updateMirror, queue.Timeout(maxUpdate))
	s.Queue.Every("mirror_updates", dueInterval, s.UpdateDue)
	return s
}

// lane is the queue lane of transfers with other servers.
const lane = "mirrors"

const (
	workers   = 4             // concurrent transfers on a node
	maxTime   = 4 * time.Hour // of one transfer
	maxActive = 10            // pending or running imports of a user
	perUser   = workers / 2   // concurrent transfers of a user on a node: slow ones leave workers to others
)

// takePlace reserves one of the perUser transfers of a user on this node. It returns
// nil if all are in use; otherwise the caller must call end.
func (s *Service) takePlace(userID int64) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[userID] >= perUser {
		return nil
	}
	s.running[userID]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.running[userID]--; s.running[userID] == 0 {
			delete(s.running, userID)
		}
	}
}

// policy returns which addresses may be connected to.
func (s *Service) policy(ctx context.Context) (outbound.Policy, error) {
	settings, err := s.Settings.Current(ctx)
	return settings.Outbound(), err
}

// open returns the remote of a repository.
func (s *Service) open(ctx context.Context, address string, c credentials) (*gitremote.Remote, error) {
	policy, err := s.policy(ctx)
	if err != nil {
		return nil, err
	}
	return gitremote.Open(gitremote.Address{URL: address, User: c.User, Password: c.Password},
		gitremote.Options{Policy: policy, Stall: s.Stall, Key: []byte(c.PrivateKey), HostKeys: c.HostKeys})
}
