package repo

import (
	"context"
	"fmt"
	"strings"

	"svc/internal/actor"
	"svc/internal/git"
	"svc/internal/project"
)

// View is a directory of a revision with what a page shows beside it.
type View struct {
	CommitID git.OID
	Entries  []git.Entry // directories first
	More     bool
	// Last is the newest commit that touched each entry, by its name.
	Last map[string]*git.Commit
	// Newest is the newest that touched the directory.
	Newest   *git.Commit
	Branches []string // by name, up to a hundred

	repo git.Repo
}

// maxLast is how many entries of a directory are asked about at once: each is
// an argument of git.
const maxLast = 500

// maxBranches is how many branches a View names.
const maxBranches = 100

// Browse reads a directory for a page, for those who may read the repository.
// All but the names of branches is read once for each commit. NotFound for a
// ref or directory that is not there.
func (s *Service) Browse(ctx context.Context, by actor.Actor, in project.Ref, ref, path string, limit int) (*View, error) {
	p, r, err := s.read(ctx, by, in)
	if err != nil {
		return nil, err
	}
	v := &View{repo: r}
	if v.CommitID, err = s.commitAt(ctx, p, r, ref); err != nil {
		return nil, missing(err, "Tree")
	}
	v.Entries, err = r.Directory(ctx, git.TreeOptions{Rev: string(v.CommitID), Path: path, Limit: limit + 1})
	if err != nil {
		return nil, treeError(err)
	}
	if len(v.Entries) > limit {
		v.Entries, v.More = v.Entries[:limit], true
	}
	names := make([]string, min(len(v.Entries), maxLast))
	for i := range names {
		names[i] = v.Entries[i].Name
	}
	if v.Last, err = r.LastCommits(ctx, string(v.CommitID), path, names); err != nil {
		return nil, fmt.Errorf("last commits of %.100q: %w", path, passing(err))
	}
	if strings.Trim(path, "/") == "" { // every commit touches the root
		if v.Newest, err = r.Commit(ctx, string(v.CommitID)); err != nil {
			return nil, missing(err, "Commit")
		}
	}
	for _, c := range v.Last {
		if v.Newest == nil || c.Committer.When.After(v.Newest.Committer.When) {
			v.Newest = c
		}
	}
	branches, err := r.RefNames(ctx, git.Heads, nil)
	if err != nil {
		return nil, fmt.Errorf("branches: %w", passing(err))
	}
	for _, name := range branches[:min(len(branches), maxBranches)] {
		v.Branches = append(v.Branches, strings.TrimPrefix(name, git.Heads))
	}
	return v, nil
}

// Languages measures the languages of the revision, the largest first.
func (v *View) Languages(ctx context.Context) ([]git.Language, error) {
	list, err := v.repo.Languages(ctx, string(v.CommitID))
	return list, missing(err, "Ref")
}

// Text gives the content of one of the entries, which is small: nil for one
// that is over the limit or no file.
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
