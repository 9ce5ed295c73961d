package repo

import (
	"context"
	"fmt"
	"strings"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// View is a directory of a revision with what a page shows beside it.
type View struct {
	CommitID git.OID
	Branches []string // by name, up to a hundred

	// What List reads.
	Entries []git.Entry // directories first
	More    bool
	Last    map[string]*git.Commit // the newest that touched each entry, by its name; nil when that took too long
	Newest  *git.Commit            // the newest that touched the directory

	path string
	repo git.Repo
}

// maxLast is how many entries of a directory are asked about at once: each is
// an argument of git.
const maxLast = 500

// maxBranches is how many branches a View names.
const maxBranches = 100

// Browse finds a directory for a page, for those who may read the repository.
// What is in it is read by List, which a page that was made before for the same
// commit need not ask. NotFound for a ref that is not there.
func (s *Service) Browse(ctx context.Context, by actor.Actor, in project.Ref, ref, path string) (*View, error) {
	p, r, err := s.read(ctx, by, in)
	if err != nil {
		return nil, err
	}
	v := &View{path: path, repo: r}
	if v.CommitID, err = s.commitAt(ctx, p, r, ref); err != nil {
		return nil, missing(err, "Tree")
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

// List reads what is in the directory, as many entries as are wanted, and the
// commits that touched it. NotFound for a directory that is not there.
func (v *View) List(ctx context.Context, limit int) (err error) {
	v.Entries, err = v.repo.Directory(ctx, git.TreeOptions{Rev: string(v.CommitID), Path: v.path, Limit: limit + 1})
	if err != nil {
		return treeError(err)
	}
	if len(v.Entries) > limit {
		v.Entries, v.More = v.Entries[:limit], true
	}
	names := make([]string, min(len(v.Entries), maxLast))
	for i := range names {
		names[i] = v.Entries[i].Name
	}
	v.Last, err = v.repo.LastCommits(ctx, string(v.CommitID), v.path, names)
	if err = passing(err); errs.Is(err, errs.KindUnavailable) {
		v.Last = nil // the files are worth more than who touched them
	} else if err != nil {
		return fmt.Errorf("last commits of %.100q: %w", v.path, err)
	}
	if strings.Trim(v.path, "/") == "" { // every commit touches the root
		if v.Newest, err = v.repo.Commit(ctx, string(v.CommitID)); err != nil {
			return missing(err, "Commit")
		}
	}
	for _, c := range v.Last {
		if v.Newest == nil || c.Committer.When.After(v.Newest.Committer.When) {
			v.Newest = c
		}
	}
	return nil
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
