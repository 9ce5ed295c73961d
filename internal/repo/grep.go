package repo

import (
	"context"
	"errors"
	"io"
	"strings"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// GrepFilter selects lines of files of a revision.
type GrepFilter struct {
	Ref     string // a branch, tag or commit; empty is the default branch
	Text    string // in a line, in any case; empty selects files by their paths alone
	Paths   []string
	Keep    func(path string) bool // filter on paths, in addition to Paths; nil keeps all
	Context int                    // lines before and after a match
}

// FileHit is a part of a file that a search found.
type FileHit struct {
	git.Hunk
	Ref string // as requested, or the default branch
}

// MaxHits is the maximum number of hits of a search.
const MaxHits = 1000

// Grep searches the text files of a revision, for users who can read the code
// of the project: first the files with the text, then those with the text in
// their paths. It finds at most MaxHits. The list is empty if nothing was
// pushed. NotFound for a revision that does not exist; Invalid for a text that is
// too long; Unavailable if the search takes too long.
func (s *Service) Grep(ctx context.Context, by actor.Actor, ref project.Ref, f GrepFilter, pg db.Paging) (*project.Project, db.Page[FileHit], error) {
	none := db.Page[FileHit]{Items: []FileHit{}}
	p, r, err := s.read(ctx, by, ref)
	if err != nil {
		return nil, none, err
	}
	if f.Ref == "" && p.DefaultBranch == "" {
		return p, none, nil
	}
	name := f.Ref
	if name == "" {
		name = p.DefaultBranch
	}
	commit, err := s.commitAt(ctx, p, r, f.Ref)
	if errs.Is(missing(err, "Ref"), errs.KindNotFound) && f.Ref == "" {
		return p, none, nil
	}
	if err != nil {
		return nil, none, missing(err, "Ref")
	}
	page, err := GrepIn(ctx, r, commit, name, f, pg)
	return p, page, err
}

// GrepIn is Grep in a repository. The caller has checked the permissions.
func GrepIn(ctx context.Context, r git.Repo, commit git.OID, name string, f GrepFilter, pg db.Paging) (db.Page[FileHit], error) {
	page := db.Page[FileHit]{Items: []FileHit{}, Over: true}
	last := pg.Offset + pg.Limit
	if pg.Offset >= MaxHits || last < 0 {
		return page, nil
	}
	last = min(last, MaxHits)
	hunks, more, err := r.Grep(ctx, git.GrepOptions{Rev: string(commit), Text: f.Text, Paths: f.Paths, Keep: f.Keep, Context: f.Context, Limit: last + 1})
	if errors.Is(err, git.ErrTooLarge) && !errors.Is(err, git.ErrMemory) {
		return page, errs.Invalid("search is too long")
	}
	if err != nil {
		return page, missing(err, "Ref")
	}
	if !more && len(hunks) <= last {
		named, err := filesNamed(ctx, r, commit, f, hunks, last+1-len(hunks))
		if err != nil {
			return page, err
		}
		hunks = append(hunks, named...)
	}
	page.More = len(hunks) > last && last < MaxHits
	if len(hunks) <= last {
		page.Total, page.Over = len(hunks), false
	}
	for _, h := range hunks[min(pg.Offset, len(hunks)):min(last, len(hunks))] {
		if h.Lines == nil {
			if h.Lines, err = firstLines(ctx, r, commit, h.Path); err != nil {
				return page, err
			}
		}
		page.Items = append(page.Items, FileHit{h, name})
	}
	return page, nil
}

// filesNamed returns files with the text in their paths that were not found by
// their content, without lines.
func filesNamed(ctx context.Context, r git.Repo, commit git.OID, f GrepFilter, found []git.Hunk, most int) ([]git.Hunk, error) {
	if f.Text == "" && f.Keep == nil {
		return nil, nil
	}
	list, err := listPaths(ctx, r, commit)
	if err != nil {
		return nil, missing(err, "Ref")
	}
	have := map[string]bool{}
	for _, h := range found {
		have[h.Path] = true
	}
	text := strings.ToLower(f.Text)
	var named []git.Hunk
	for i, path := range list.paths {
		if !strings.Contains(list.lower[i], text) || have[path] || f.Keep != nil && !f.Keep(path) {
			continue
		}
		if len(named) == most {
			break
		}
		named = append(named, git.Hunk{Path: path, Start: 1})
	}
	return named, nil
}

// firstLines returns the first lines of a text file; none of a binary or large
// one.
func firstLines(ctx context.Context, r git.Repo, commit git.OID, path string) ([]string, error) {
	const lines, bytes = 5, 4 << 10
	entry, err := r.Entry(ctx, string(commit), path)
	if err != nil {
		return nil, missing(err, "File")
	}
	if entry.Type != git.TypeBlob {
		return nil, nil
	}
	content, err := r.Open(ctx, entry.OID)
	if err != nil {
		return nil, missing(err, "File")
	}
	defer content.Close()
	head, err := io.ReadAll(io.LimitReader(content, bytes))
	if err != nil {
		return nil, missing(err, "File")
	}
	text := string(head)
	if strings.ContainsRune(text, 0) {
		return nil, nil
	}
	list := strings.SplitN(strings.TrimSuffix(strings.ToValidUTF8(text, "\uFFFD"), "\n"), "\n", lines+1)
	return list[:min(len(list), lines)], nil
}
