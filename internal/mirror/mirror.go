// Package mirror copies repositories from and to other servers: imports by URL, and
// mirrors that are updated again and again.
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
	// Stall is how long another server may send nothing; 0 is the usual time.
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

// lane is the queue lane of transfers from and to other servers.
const lane = "mirrors"

const (
	workers   = 4             // transfers at once on a node
	maxTime   = 4 * time.Hour // of one transfer
	maxActive = 10            // imports of a user that wait or run
	perUser   = workers / 2   // transfers of a user at once on a node: slow ones leave workers to others
)

// takePlace takes one of the user's places on this node. It returns nil if all are
// taken; the caller calls end otherwise.
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

// policy says which addresses may be reached.
func (s *Service) policy(ctx context.Context) (outbound.Policy, error) {
	settings, err := s.Settings.Current(ctx)
	return outbound.Policy{Local: settings.AllowLocalRequests, Allowed: settings.OutboundAllowlist}, err
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
