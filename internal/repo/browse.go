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

// View is a directory of a revision with what a page shows beside it.
type View struct {
	CommitID git.OID
	Branches []string // by name, up to a hundred

	// What List reads.
	Entries []git.Entry            // directories first
	Total   int                    // how many there are in all
	Readme  *git.Entry             // the README among all of them; nil when there is none
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

// List reads what is in the directory, as many entries as are wanted behind
// the first ones, and the commits that touched them. NotFound for a directory
// that is not there.
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
		v.Last = nil // the files are worth more than who touched them
	} else if err != nil {
		return fmt.Errorf("last commits of %.100q: %w", v.path, err)
	}
	return v.findNewest(ctx)
}

// findNewest finds the newest commit that touched the directory: every one
// touches the root, and elsewhere it is one of those that touched an entry.
// Where not all entries are listed it is asked for by itself.
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

// Languages measures the languages of the revision, the largest first.
func (v *View) Languages(ctx context.Context) ([]git.Language, error) {
	list, err := v.repo.Languages(ctx, string(v.CommitID))
	return list, missing(err, "Ref")
}

// Text returns the content of one of the entries, which is small: nil for one
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
