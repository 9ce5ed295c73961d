package codesearch

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sourcegraph/zoekt"

	"svc/internal/git"
)

// format is the version of the index. Indexes of other formats are built again.
const format = 1

// shardBytes is the target size of the content of a shard. It limits the memory of a
// build, and how much is rebuilt when one file changes.
const shardBytes = 16 << 20

// maxFiles is the number of files of a project that are indexed.
const maxFiles = 1 << 20

// document is a file on its way into the index.
type document struct {
	git.File
	skipped bool // only the path is indexed
}

// dirOf is the directory of the shards of a project.
func (s *Service) dirOf(projectID int64) string {
	return filepath.Join(s.Dir, fmt.Sprintf("%02x", projectID%256), strconv.FormatInt(projectID, 10))
}

func (s *Service) pathOf(projectID int64, shard string) string {
	return filepath.Join(s.dirOf(projectID), shard+".zoekt")
}

// write creates the shards of a commit that do not exist yet. A shard is named by the
// digest of its content, and files are distributed over the shards of a project by the
// hash of their paths, so that a push rebuilds only the shards of the files that it
// changed. before are the shards of the current index.
func (s *Service) write(ctx context.Context, projectID int64, r git.Repo, commit git.OID, before []string, force bool) (x index, err error) {
	x = index{ProjectID: projectID, Commit: string(commit)}
	files, err := r.Files(ctx, string(commit))
	if err != nil {
		return x, err
	}
	docs := make([]document, 0, len(files))
	for _, f := range files {
		if !utf8.ValidString(f.Path) {
			continue
		}
		if len(docs) == maxFiles {
			x.Partial = true
			break
		}
		d := document{f, f.Size > s.Limits.File || x.ContentBytes+f.Size > s.Limits.Project}
		if d.skipped {
			x.Partial = true
		} else {
			x.ContentBytes += f.Size
		}
		docs = append(docs, d)
	}
	x.Files = int64(len(docs))
	if err := os.MkdirAll(s.dirOf(projectID), 0o700); err != nil {
		return x, err
	}
	for _, part := range distribute(docs, x.ContentBytes) {
		name := digest(part)
		path := s.pathOf(projectID, name)
		size, err := int64(0), error(fs.ErrNotExist)
		switch {
		case force:
		case s.Store == nil:
			size, err = s.existing(path)
		case slices.Contains(before, name): // others may be swept before the row names them
			size, err = s.stored(ctx, projectID, name)
		}
		if errors.Is(err, fs.ErrNotExist) {
			size, err = writeShard(ctx, path, projectID, r, part)
			if err == nil && s.Store != nil {
				err = s.upload(ctx, projectID, name)
			}
		}
		if err != nil {
			return x, err
		}
		x.Shards = append(x.Shards, name)
		x.IndexBytes += size
	}
	return x, nil
}

// existing returns the size of a shard that exists, and protects it from the sweep.
func (s *Service) existing(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	now := s.Now()
	return info.Size(), os.Chtimes(path, now, now)
}

// distribute splits the files of a project into shards. The number of shards is a power
// of two, so that it changes rarely.
func distribute(docs []document, size int64) [][]document {
	n := 1
	for int64(n)*shardBytes < size {
		n *= 2
	}
	parts := make([][]document, n)
	for _, d := range docs {
		h := fnv.New32a()
		h.Write([]byte(d.Path))
		at := int(h.Sum32()) & (n - 1)
		parts[at] = append(parts[at], d)
	}
	parts = slices.DeleteFunc(parts, func(p []document) bool { return len(p) == 0 })
	for _, p := range parts { // vendored files come last
		slices.SortStableFunc(p, func(a, b document) int { return cmp.Compare(rank(a.Vendored), rank(b.Vendored)) })
	}
	return parts
}

func rank(vendored bool) int {
	if vendored {
		return 1
	}
	return 0
}

// digest returns the name of the shard that contains these files.
func digest(docs []document) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d\n", format)
	for _, d := range docs {
		fmt.Fprintf(h, "%s %q %v %v %q\n", d.OID, d.Path, d.skipped, d.Vendored, d.Language)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// writeShard builds a shard and moves it to its path.
func writeShard(ctx context.Context, path string, projectID int64, r git.Repo, docs []document) (size int64, err error) {
	b, err := zoekt.NewIndexBuilder(&zoekt.Repository{ID: uint32(projectID), Name: strconv.FormatInt(projectID, 10)})
	if err != nil {
		return 0, err
	}
	add := func(d document, content []byte) error {
		doc := zoekt.Document{Name: d.Path, Content: content, Language: d.Language}
		if d.skipped || binary(content) {
			doc.Content = nil
		} else if doc.Language == "" && !strings.Contains(filepath.Base(d.Path), ".") {
			doc.Language = r.LanguageOf(content)
		}
		if doc.Language == "" {
			doc.Language = unknownLanguage // else zoekt would look for it
		}
		return b.Add(doc)
	}
	// The order of files is the order of results: read each run of files with content at once.
	for len(docs) > 0 {
		if docs[0].skipped {
			if err := add(docs[0], nil); err != nil {
				return 0, err
			}
			docs = docs[1:]
			continue
		}
		var run []git.File
		for len(run) < len(docs) && !docs[len(run)].skipped {
			run = append(run, docs[len(run)].File)
		}
		err := r.EachBlob(ctx, run, func(f git.File, content []byte) error { return add(document{File: f}, content) })
		if err != nil {
			return 0, err
		}
		docs = docs[len(run):]
	}
	err = place(path, func(f *os.File) error {
		if err := b.Write(f); err != nil {
			return err
		}
		info, err := f.Stat()
		if err != nil {
			return err
		}
		size = info.Size()
		return nil
	})
	return size, err
}

// unknownLanguage is the language in the index of files whose language is not known.
const unknownLanguage = "-"

// binary reports whether a file is not text.
func binary(content []byte) bool {
	return bytes.IndexByte(content, 0) >= 0
}
