package artifact

import (
	"context"
	"io/fs"
	"path"
	"strings"

	"svc/internal/errs"
)

// Dir is a directory of an archive.
type Dir struct {
	Archive *File
	Entries []Item // directories first, by name
	More    bool   // there are more of them
}

// Item is an entry of a directory of an archive.
type Item struct {
	Name  string
	Path  string
	Dir   bool
	Size  int64 // of a directory, of all files in it
	Files int   // in a directory
}

// maxItems is the maximum number of entries of a directory in a listing.
const maxItems = 500

// Tree lists a directory of the archive of a job, the root if it is empty. Only that
// part of the index is read. NotFound; Unprocessable if the archive cannot be read.
func (s *Service) Tree(ctx context.Context, jobID int64, dir string) (*Dir, error) {
	dir = path.Clean(strings.Trim(dir, "/"))
	if !fs.ValidPath(dir) {
		return nil, errs.NotFound("")
	}
	r, file, err := s.ReadArchive(ctx, jobID)
	if err != nil {
		return nil, err
	}
	list, more, err := r.List(dir, maxItems)
	if err != nil {
		return nil, missing(err)
	}
	d := &Dir{Archive: file, More: more}
	for _, e := range list {
		d.Entries = append(d.Entries, Item{Name: e.Name(), Path: e.Path, Dir: e.Dir, Size: e.Size, Files: e.Files})
	}
	return d, nil
}
