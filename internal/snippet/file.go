package snippet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"svc/internal/activity"
	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/repo"
)

// File is a file of a snippet in some version.
type File struct {
	Path string
	Size int64
	ID   git.OID

	repo git.Repo
}

// Name is the last part of the path.
func (f *File) Name() string { return path.Base(f.Path) }

// Open returns the content as a stream.
func (f *File) Open(ctx context.Context) (io.ReadCloser, error) {
	content, err := f.repo.Open(ctx, f.ID)
	if err != nil {
		return nil, fmt.Errorf("open blob %s: %w", f.ID, err)
	}
	return content, nil
}

// Read returns the content up to the limit.
func (f *File) Read(ctx context.Context, limit int64) ([]byte, error) {
	content, err := f.Open(ctx)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(content, limit))
	return text, errors.Join(err, content.Close())
}

// File returns a file of a snippet in a version. An empty ref is the newest
// version, and an empty path the first file. NotFound.
func (s *Service) File(ctx context.Context, by actor.Actor, in *project.Ref, id int64, ref, name string) (*Snippet, *File, error) {
	found, err := s.Get(ctx, by, in, id)
	if err != nil {
		return nil, nil, err
	}
	if name == "" {
		name = found.Files[0]
	}
	r, err := s.repo(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	f, err := fileAt(ctx, r, ref, name)
	return found, f, err
}

// Files returns all files of a snippet that the actor was given, in their
// newest version.
func (s *Service) Files(ctx context.Context, of *Snippet) ([]*File, error) {
	r, err := s.repo(ctx, of.ID)
	if err != nil {
		return nil, err
	}
	var list []*File
	for _, name := range of.Files {
		f, err := fileAt(ctx, r, "", name)
		if errs.Is(err, errs.KindNotFound) {
			continue // deleted concurrently
		}
		if err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	return list, nil
}

func (s *Service) repo(ctx context.Context, id int64) (git.Repo, error) {
	a, err := s.Repos.SnippetAuxRepo(ctx, id)
	if err == nil && a == nil {
		err = errs.NotFound("Snippet")
	}
	if err != nil {
		return git.Repo{}, err
	}
	return s.Repos.OpenAuxRepo(a)
}

func fileAt(ctx context.Context, r git.Repo, ref, name string) (*File, error) {
	if ref == "" {
		ref = "HEAD"
	}
	r = r.As(git.View{}) // unreachable commits are not shown
	entry, err := r.Entry(ctx, ref, name)
	if err == nil && entry.Type != git.TypeBlob {
		err = git.ErrNotFound
	}
	if err != nil {
		return nil, repo.Missing(err, "File")
	}
	info, err := r.Info(ctx, entry.OID)
	if err != nil {
		return nil, repo.Missing(err, "File")
	}
	return &File{Path: name, Size: info.Size, ID: entry.OID, repo: r}, nil
}

// paths lists the files of a commit; none for an empty one.
func paths(ctx context.Context, r git.Repo, commit string) ([]string, error) {
	if commit == "" {
		return nil, nil
	}
	entries, err := r.Tree(ctx, git.TreeOptions{Rev: commit, Recursive: true, Limit: maxEntries})
	if err != nil {
		return nil, fmt.Errorf("files of %s: %w", commit, err)
	}
	var list []string
	for _, e := range entries {
		if e.Type == git.TypeBlob {
			list = append(list, e.Path)
		}
	}
	slices.Sort(list)
	return list, nil
}

// maxEntries is the maximum number of entries that are read from a commit, which is
// enough to refuse a commit with too many files.
const maxEntries = 1000

// parsePath reads the path of a snippet's repository: snippets/1, or
// group/project/snippets/1.
func parsePath(at string) (in *project.Ref, id int64, ok bool) {
	place, number := path.Split(at)
	place = strings.TrimSuffix(place, "/")
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil || id < 1 || number[0] == '+' {
		return nil, 0, false
	}
	if place == "snippets" {
		return nil, id, true
	}
	ref, ok := repo.CutPath(place, "/snippets")
	if !ok || !strings.Contains(string(ref), "/") {
		return nil, 0, false
	}
	return &ref, id, true
}

// open resolves the path of a snippet in a git URL.
func (s *Service) open(ctx context.Context, by actor.Actor, at string, write bool) (*repo.AuxRepo, bool, error) {
	in, id, ok := parsePath(at)
	if !ok {
		return nil, false, nil
	}
	if in != nil {
		// A project below a group of that name may have the same path.
		if _, err := s.Projects.Require(ctx, by, *in, project.NoAccess); errs.Is(err, errs.KindNotFound) {
			var moved *project.Moved
			if errors.As(err, &moved) {
				return nil, true, repo.MovedWith(err, "/snippets/"+strconv.FormatInt(id, 10))
			}
			return nil, false, nil
		}
	}
	get := s.Get
	if write {
		get = s.changeable
	}
	found, err := get(ctx, by, in, id)
	if err != nil {
		return nil, true, err
	}
	if in == nil && found.In != nil {
		return nil, true, errs.NotFound("Snippet")
	}
	a, err := s.Repos.SnippetAuxRepo(ctx, id)
	if err == nil && a == nil {
		err = errs.NotFound("Snippet")
	}
	return a, true, err
}

// check limits a snippet to one branch and a few files.
func (s *Service) check(ctx context.Context, _ *repo.AuxRepo, push *git.Push) error {
	head, err := push.Repo.DefaultBranch(ctx)
	if err != nil {
		return err
	}
	begun := true
	if _, err := push.Repo.Ref(ctx, git.Heads+head); errors.Is(err, git.ErrNotFound) {
		begun = false
	} else if err != nil {
		return err
	}
	for _, c := range push.Changes {
		switch {
		case c.Refused != "":
			continue
		case c.Ref != git.Heads+head || c.New == git.ZeroOID || begun && c.Old == git.ZeroOID:
			c.Refused = "You cannot create or delete branches."
			continue
		}
		list, err := paths(ctx, push.Repo, string(c.New))
		if err != nil {
			return err
		}
		switch {
		case len(list) == 0:
			c.Refused = "The repository must contain at least 1 file."
		case len(list) > MaxFiles:
			c.Refused = fmt.Sprintf("The repository can contain at most %d file(s).", MaxFiles)
		}
	}
	return nil
}

// follow updates the list of files of the snippet.
func (s *Service) follow(ctx context.Context, p repo.AuxRepoPush) (func(context.Context, *db.Tx) error, error) {
	list, err := paths(ctx, p.Repo, string(p.Tip))
	if err != nil {
		return nil, err
	}
	id := p.AuxRepo.SnippetID
	return func(ctx context.Context, tx *db.Tx) error {
		if id == nil {
			return nil // deleted concurrently
		}
		if err := tx.Lock(ctx, "snippets", *id); err != nil {
			return err
		}
		found, err := findAny(ctx, tx, *id)
		if errors.Is(err, db.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		what, at := activity.Updated, p.At
		if len(found.Files) == 0 {
			what, at = activity.Created, found.CreatedAt
		}
		if err := saveFiles(ctx, tx, *id, list, at); err != nil {
			return err
		}
		return found.record(ctx, tx, p.By, what, p.At)
	}, nil
}
