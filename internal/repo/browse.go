package repo

import (
	"context"
	"fmt"
	"path"
	"strings"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// View is a directory of a revision with the data for its page.
type View struct {
	CommitID git.OID

	// The following fields are set by List.
	Entries []git.Entry            // directories first
	Total   int                    // number of entries
	Readme  *git.Entry             // the README of the directory; nil if there is none
	Last    map[string]*git.Commit // last commit of each entry, by name; nil if it took too long
	Newest  *git.Commit            // last commit of the directory

	path string
	repo git.Repo
}

// maxLast is the maximum number of entries whose last commits are looked up at
// once: each is an argument of git.
const maxLast = 500

// Browse finds a directory for a page, for users who may read the repository.
// The content is read by List, so that a page can be served from a cache by its
// commit. NotFound if the ref does not exist.
func (s *Service) Browse(ctx context.Context, by actor.Actor, in project.Ref, ref, path string) (*View, error) {
	p, r, err := s.read(ctx, by, in)
	if err != nil {
		return nil, err
	}
	v := &View{path: path, repo: r}
	if v.CommitID, err = s.commitAt(ctx, p, r, ref); err != nil {
		return nil, missing(err, "Tree")
	}
	return v, nil
}

// List reads limit entries of the directory after the first ones, with their
// last commits. NotFound if the directory does not exist.
func (v *View) List(ctx context.Context, first, limit int) error {
	all, err := v.repo.Directory(ctx, git.TreeOptions{Rev: string(v.CommitID), Path: v.path})
	if err != nil {
		return treeError(err)
	}
	if e, ok := Readme(all); ok {
		v.Readme = &e
	}
	v.Total = len(all)
	v.Entries = all[min(first, v.Total):min(first+limit, v.Total)]
	names := make([]string, min(len(v.Entries), maxLast))
	for i := range names {
		names[i] = v.Entries[i].Name
	}
	v.Last, err = v.repo.LastCommits(ctx, string(v.CommitID), v.path, names)
	if err = passing(err); errs.Is(err, errs.KindUnavailable) {
		v.Last = nil // show the files without their last commits
	} else if err != nil {
		return fmt.Errorf("last commits of %.100q: %w", v.path, err)
	}
	return v.findNewest(ctx)
}

// findNewest finds the last commit of the directory. For the root this is the
// revision itself; elsewhere it is the newest last commit of the entries. If
// not all entries are listed, it is looked up separately.
func (v *View) findNewest(ctx context.Context) (err error) {
	at := strings.Trim(v.path, "/")
	if at == "" {
		v.Newest, err = v.repo.Commit(ctx, string(v.CommitID))
		return missing(err, "Commit")
	}
	last := v.Last
	if len(v.Entries) < v.Total && last != nil {
		dir, name := path.Split(at)
		last, err = v.repo.LastCommits(ctx, string(v.CommitID), strings.Trim(dir, "/"), []string{name})
		if err = passing(err); err != nil && !errs.Is(err, errs.KindUnavailable) {
			return fmt.Errorf("last commit of %.100q: %w", v.path, err)
		}
	}
	for _, c := range last {
		if v.Newest == nil || c.Committer.When.After(v.Newest.Committer.When) {
			v.Newest = c
		}
	}
	return nil
}

// Languages returns the languages of the revision, the largest first.
func (v *View) Languages(ctx context.Context) ([]git.Language, error) {
	list, err := v.repo.Languages(ctx, string(v.CommitID))
	return list, missing(err, "Ref")
}

// Text returns the content of a small entry; nil if it is over the limit or not
// a file.
func (v *View) Text(ctx context.Context, e git.Entry, limit int64) ([]byte, error) {
	if e.Type != git.TypeBlob {
		return nil, nil
	}
	info, err := v.repo.Info(ctx, e.OID)
	if err != nil {
		return nil, missing(err, "File")
	}
	if info.Size > limit {
		return nil, nil
	}
	o, err := v.repo.Object(ctx, e.OID)
	if err != nil {
		return nil, missing(err, "File")
	}
	return o.Content, nil
}
