// Package artifact stores the files that jobs upload: archives, reports and packed
// logs. It builds indexes that make them cheap to read, and removes the files when they
// expire.
//
// The package does not check permissions; package ci does.
package artifact

import (
	"context"
	"fmt"
	"io"
	"time"

	"svc/internal/blob"
	"svc/internal/ci/joblog"
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
	Logs     *joblog.Store
	Now      func() time.Time
}

// Service stores the files of jobs.
type Service struct {
	Deps
	indexing gate // of archives and reports
}

// New returns the service and registers its background jobs.
func New(d Deps) *Service {
	s := &Service{Deps: d, indexing: newGate()}
	queue.Handle(d.Queue, s.removeFiles)
	queue.Handle(d.Queue, s.removeArtifacts, queue.Timeout(time.Hour))
	d.Queue.Every("ci.sweep_logs", time.Minute, s.SweepLogs)
	return s
}

// File is a file of a job.
type File struct {
	ID        int64
	JobID     int64
	ProjectID int64
	Kind      Kind
	Format    Format
	Filename  string
	Size      int64
	SHA256    string
	ExpiresAt *time.Time
	CreatedAt time.Time

	blob string // its key in the blob store
}

// ByJob returns the files of jobs, in the order in which they were uploaded.
func (s *Service) ByJob(ctx context.Context, jobs []int64) (map[int64][]*File, error) {
	found := map[int64][]*File{}
	if len(jobs) == 0 {
		return found, nil
	}
	list, err := findByJobs(ctx, s.DB, jobs)
	for _, a := range list {
		found[a.JobID] = append(found[a.JobID], a)
	}
	return found, err
}

// Input are the files of a job that later jobs download; nil if it has none.
type Input struct {
	Archive *File
	Dotenv  *File // a report with variables
}

// Inputs returns the files of jobs that later jobs download.
func (s *Service) Inputs(ctx context.Context, jobs []int64) (map[int64]Input, error) {
	list, err := findInputs(ctx, s.DB, jobs)
	found := make(map[int64]Input, len(jobs))
	for _, a := range list {
		in := found[a.JobID]
		if a.Kind == Archive {
			in.Archive = a
		} else {
			in.Dotenv = a
		}
		found[a.JobID] = in
	}
	return found, err
}

// Sizes returns the number of bytes of the artifacts of projects, with their packed
// logs.
func (s *Service) Sizes(ctx context.Context, projects []int64) (map[int64]int64, error) {
	found, err := sumByProject(ctx, s.DB, projects)
	if err != nil {
		return nil, fmt.Errorf("sizes of artifacts: %w", err)
	}
	return found, nil
}

// GroupSizes is Sizes for groups, with their subgroups.
func (s *Service) GroupSizes(ctx context.Context, groups []int64) (map[int64]int64, error) {
	found, err := sumByGroup(ctx, s.DB, groups)
	if err != nil {
		return nil, fmt.Errorf("sizes of artifacts: %w", err)
	}
	return found, nil
}

// Content is the content of an artifact; the caller closes it.
type Content struct {
	Name    string
	Size    int64
	ModTime time.Time
	ETag    string
	io.ReadSeekCloser
}

// OpenArchive opens the archive of a job. NotFound if there is none.
func (s *Service) OpenArchive(ctx context.Context, jobID int64) (*Content, error) {
	a, err := find(ctx, s.DB, jobID, Archive)
	if err != nil {
		return nil, err
	}
	o, err := s.Blobs.Get(ctx, a.blob)
	if err != nil {
		return nil, fmt.Errorf("open artifacts of job %d: %w", jobID, err)
	}
	return &Content{Name: a.Filename, Size: a.Size, ModTime: a.CreatedAt, ETag: `"` + a.SHA256 + `"`, ReadSeekCloser: o}, nil
}
