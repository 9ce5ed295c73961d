// Package lfs implements Git LFS: the content of large files, which repositories
// refer to by pointers, and file locks. Content is stored once per digest; projects
// hold references to it.
//
// See https://github.com/git-lfs/git-lfs/tree/main/docs/api.
package lfs

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"svc/internal/actor"
	"svc/internal/blob"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/limit"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/repo"
	"svc/internal/secret"
	"svc/internal/setting"
)

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Queue    *queue.Queue
	Blobs    blob.Store
	Keys     *secret.Keyring
	Settings *setting.Service
	Projects *project.Service
	Repos    *repo.Service
	Log      *slog.Logger
	Now      func() time.Time
}

// Service manages the LFS objects and file locks of projects.
type Service struct {
	Deps
	uploads   *limit.Share
	downloads *limit.Share
}

// New returns the service and registers its background jobs.
func New(d Deps) *Service {
	s := &Service{
		Deps:      d,
		uploads:   limit.NewShare("LFS uploads", limit.ShareLimits{Total: 16, PerUser: 8, Queue: 64, Wait: time.Minute}),
		downloads: limit.NewShare("LFS downloads", limit.ShareLimits{Total: 64, Reserve: 32, PerUser: 16, PerAddress: 8, Queue: 64, Wait: time.Minute}),
	}
	s.handleWork()
	return s
}

// Disabled is the name of the missing object in the NotFound error of projects where
// LFS is disabled.
const Disabled = "LFS"

// Operation is an operation on objects.
type Operation string

// The operations.
const (
	Download Operation = "download"
	Upload   Operation = "upload"
)

// Project returns a project to an actor who may use LFS in it: downloads require the
// permission to fetch, uploads the permission to push. The errors are those of a fetch
// and a push; NotFound if LFS is disabled in the project, and NotAllowed if it is
// disabled on the instance.
func (s *Service) Project(ctx context.Context, by actor.Actor, ref project.Ref, op Operation) (*project.Project, error) {
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return nil, err
	}
	if !settings.LFSEnabled {
		return nil, errs.NotAllowed("Git LFS is not enabled on this server. Contact your administrator.")
	}
	open := s.Repos.FetchAccess
	if op == Upload {
		open = s.Repos.PushAccess
	}
	p, err := open(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	if !p.Settings.LFSEnabled {
		return nil, errs.NotFound(Disabled)
	}
	return p, nil
}

// Allowed reports whether LFS is enabled on the instance. It returns true if the settings
// cannot be read.
func (s *Service) Allowed(ctx context.Context) bool {
	settings, err := s.Settings.Current(ctx)
	return err != nil || settings.LFSEnabled
}

// Enabled reports whether LFS can be used in a project: it is enabled there and on
// the instance.
func (s *Service) Enabled(ctx context.Context, p *project.Project) (bool, error) {
	settings, err := s.Settings.Current(ctx)
	return settings.LFSEnabled && p.Settings.LFSEnabled, err
}

// Sizes returns the number of bytes of the LFS objects of projects.
func (s *Service) Sizes(ctx context.Context, projects []int64) (map[int64]int64, error) {
	found, err := sizesOf(ctx, s.DB, projects)
	if err != nil {
		return nil, fmt.Errorf("sizes of LFS objects: %w", err)
	}
	return found, nil
}

// GroupSizes is Sizes for groups, with their subgroups.
func (s *Service) GroupSizes(ctx context.Context, groups []int64) (map[int64]int64, error) {
	found, err := sizesOfGroups(ctx, s.DB, groups)
	if err != nil {
		return nil, fmt.Errorf("sizes of LFS objects: %w", err)
	}
	return found, nil
}
