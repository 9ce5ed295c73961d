// Package packages implements the package registry: packages of the formats
// generic, npm and PyPI, their files, protection rules and cleanup.
//
// A package is a name and a version in a project. Its files refer to content that
// is stored once per digest; a format adds names, metadata and a protocol.
package packages

import (
	"context"
	"fmt"
	"time"

	"svc/internal/blob"
	"svc/internal/ci"
	"svc/internal/db"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/setting"
)

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Queue    *queue.Queue
	Blobs    blob.Store
	Settings *setting.Service
	Projects *project.Service
	CI       *ci.Service
	Now      func() time.Time
}

// Service manages packages.
type Service struct{ Deps }

// New returns the service and registers its background jobs.
func New(d Deps) *Service {
	s := &Service{d}
	queue.Handle(d.Queue, s.removeContent)
	d.Queue.Every("packages.sweep", time.Minute, s.Sweep)
	d.Queue.Every("packages.cleanup", 10*time.Minute, s.Cleanup)
	return s
}

// Type is the format of a package.
type Type string

// The formats.
const (
	Generic Type = "generic"
	NPM     Type = "npm"
	PyPI    Type = "pypi"
)

// Types returns all formats.
func Types() []Type { return []Type{Generic, NPM, PyPI} }

// Status is the state of a package.
type Status string

// The states. A hidden package can be downloaded, but lists do not show it.
const (
	Default Status = "default"
	Hidden  Status = "hidden"
)

// Package is one version of a package.
type Package struct {
	ID               int64
	ProjectID        int64
	Type             Type
	Name             string
	Version          string
	Status           Status
	CreatorID        *int64
	CreatedAt        time.Time
	UpdatedAt        time.Time
	LastDownloadedAt *time.Time

	ProjectPath string         // read by lists
	Tags        []Tag          // npm: read by lists and Get
	Pipelines   []*ci.Pipeline // those that published it, newest first; as far as the actor sees them

	lookup   string
	metadata string
}

// Tag is a distribution tag of an npm package.
type Tag struct {
	ID        int64
	PackageID int64
	Name      string
	CreatedAt time.Time
	UpdatedAt time.Time
}

// File is a file of a package.
type File struct {
	ID        int64
	PackageID int64
	ProjectID int64
	Name      string
	Size      int64
	SHA256    string
	SHA1      string
	MD5       string
	CreatedAt time.Time

	blobID   int64
	blob     string // its key in the store
	metadata string
}

// Sizes returns the number of bytes of the package files of projects.
func (s *Service) Sizes(ctx context.Context, projects []int64) (map[int64]int64, error) {
	found, err := sumByProject(ctx, s.DB, projects)
	if err != nil {
		return nil, fmt.Errorf("sizes of packages: %w", err)
	}
	return found, nil
}

// GroupSizes is Sizes for groups, with their subgroups.
func (s *Service) GroupSizes(ctx context.Context, groups []int64) (map[int64]int64, error) {
	found, err := sumByGroup(ctx, s.DB, groups)
	if err != nil {
		return nil, fmt.Errorf("sizes of packages: %w", err)
	}
	return found, nil
}
