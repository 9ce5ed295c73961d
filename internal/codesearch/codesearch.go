// Package codesearch indexes the default branches of projects and searches all of
// them at once. The index of a project is a set of zoekt shards, which are files that
// are mapped into memory while they are searched. A row names the current shards; a
// background job writes them after a push (ADR 24). Nodes that do not share a
// directory exchange the shards through the object store.
package codesearch

import (
	"log/slog"
	"runtime"
	"time"

	"svc/internal/blob"
	"svc/internal/db"
	"svc/internal/limit"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/repo"
)

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Queue    *queue.Queue
	Projects *project.Service
	Repos    *repo.Service
	Log      *slog.Logger
	Now      func() time.Time
	// Dir is the directory of the index, which all nodes share. With a Store, each
	// node has its own, with copies of what the store has.
	Dir   string
	Store blob.Store // nil if all nodes share the directory
	Limits
}

// Limits bound the index.
type Limits struct {
	File    int64 // bytes of the largest file whose content is indexed
	Project int64 // bytes of content of a project that are indexed; 0 switches the index off
}

// Service builds the index and searches it.
type Service struct {
	Deps
	searches *limit.Share
	shards   *shardCache
	copies   *copies // of the Store
}

// New returns the service and registers its background jobs.
func New(d Deps) *Service {
	s := &Service{
		Deps:   d,
		shards: newShardCache(maxOpen),
		copies: newCopies(),
		searches: limit.NewShare("code searches", limit.ShareLimits{
			Total: max(2, runtime.GOMAXPROCS(0)), Reserve: 1, PerUser: 2, PerAddress: 1, Queue: 4, Wait: 5 * time.Second,
		}),
	}
	s.handleWork()
	return s
}

// Enabled reports whether there is an index.
func (s *Service) Enabled() bool { return s.Limits.Project > 0 }

// Close closes the files of the index.
func (s *Service) Close() {
	s.copies.close()
	s.shards.closeAll()
}
