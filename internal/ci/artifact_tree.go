package ci

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
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
// empty, for those who may read its artifacts. Only the end of the archive is
// read. NotFound; Unprocessable when it is no archive that can be read.
func (s *Service) ArtifactTree(ctx context.Context, by actor.Actor, ref project.Ref, jobID int64, dir string) (*ArtifactDir, error) {
	j, err := s.artifactJob(ctx, by, ref, jobID)
	if err != nil {
		return nil, err
	}
	a, err := findArtifact(ctx, s.DB, j.ID, ArchiveFile)
	if err != nil {
		return nil, err
	}
	dir = path.Clean(strings.Trim(dir, "/"))
	if !fs.ValidPath(dir) {
		return nil, errs.NotFound("")
	}
	r, err := openZip(ctx, s.Blobs, a)
	if err != nil {
		return nil, fmt.Errorf("artifacts of job %d: %w", j.ID, err)
	}
	prefix := dir + "/"
	if dir == "." {
		prefix = ""
	}
	items := map[string]*ArtifactItem{}
	there := prefix == ""
	for _, f := range r.File {
		if !fs.ValidPath(strings.TrimSuffix(f.Name, "/")) {
			continue // it would lie outside
		}
		rest, within := strings.CutPrefix(f.Name, prefix)
		if !within {
			continue
		}
		if there = true; rest == "" {
			continue
		}
		name, _, deeper := strings.Cut(rest, "/")
		item := items[name]
		if item == nil {
			item = &ArtifactItem{Name: name, Path: prefix + name, Dir: deeper}
			items[name] = item
		}
		if !strings.HasSuffix(f.Name, "/") {
			item.Files++
			item.Size += int64(f.UncompressedSize64)
		}
	}
	if !there {
		return nil, errs.NotFound("")
	}
	d := &ArtifactDir{Job: j, Archive: a}
	for _, item := range items {
		d.Entries = append(d.Entries, *item)
	}
	slices.SortFunc(d.Entries, func(a, b ArtifactItem) int {
		if a.Dir != b.Dir {
			if a.Dir {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Name, b.Name)
	})
	if len(d.Entries) > maxItems {
		d.Entries, d.More = d.Entries[:maxItems], true
	}
	return d, s.fillJobs(ctx, []*Job{j})
}
