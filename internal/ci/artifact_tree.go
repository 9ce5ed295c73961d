package ci

import (
	"context"
	"io/fs"
	"path"
	"strings"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/project"
)

// ArtifactDir is a directory of the archive of a job.
type ArtifactDir struct {
	Job     *Job
	Archive *Artifact
	Entries []ArtifactItem // directories first, by name
	More    bool           // there are more of them
}

// ArtifactItem is an entry of a directory of an archive.
type ArtifactItem struct {
	Name  string
	Path  string
	Dir   bool
	Size  int64 // of a directory, of all files in it
	Files int   // in a directory
}

// maxItems is how many entries of a directory are shown.
const maxItems = 500

// ArtifactTree lists a directory of the archive of a job, the root when it is
// empty, for those who may read its artifacts. Only that part of the index is
// read. NotFound; Unprocessable when it is no archive that can be read.
func (s *Service) ArtifactTree(ctx context.Context, by actor.Actor, ref project.Ref, jobID int64, dir string) (*ArtifactDir, error) {
	j, err := s.artifactJob(ctx, by, ref, jobID)
	if err != nil {
		return nil, err
	}
	dir = path.Clean(strings.Trim(dir, "/"))
	if !fs.ValidPath(dir) {
		return nil, errs.NotFound("")
	}
	r, file, err := s.openArchiveOf(ctx, j.ID)
	if err != nil {
		return nil, err
	}
	list, more, err := r.List(dir, maxItems)
	if err != nil {
		return nil, missing(err)
	}
	d := &ArtifactDir{Job: j, Archive: file, More: more}
	for _, e := range list {
		d.Entries = append(d.Entries, ArtifactItem{Name: e.Name(), Path: e.Path, Dir: e.Dir, Size: e.Size, Files: e.Files})
	}
	return d, s.fillJobs(ctx, by, []*Job{j})
}
