package wiki

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"io"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/repo"
)

// Fields are the fields of a page; nil leaves a field as it is.
type Fields struct {
	Title   *string // with its directories
	Content *string
	Format  *Format
	Message string // of the commit; empty uses the default message
	// Version is the last commit of the page that the writer has seen; empty disables
	// the check.
	Version string
	// Since is when the writer has seen the page.
	Since *time.Time
}

func (f Fields) check() error {
	if f.Content != nil && len(*f.Content) > maxContent {
		return errs.InvalidField("content", "is too long (maximum is %d bytes)", maxContent)
	}
	return nil
}

// Create creates a page. Requires Developer. NotFound; Forbidden; Unauthorized;
// Invalid; Unprocessable if the page exists.
func (s *Service) Create(ctx context.Context, by actor.Actor, at project.Place, f Fields) (*Wiki, *Page, error) {
	w, err := s.writable(ctx, by, at)
	if err != nil {
		return nil, nil, err
	}
	if err := f.check(); err != nil {
		return nil, nil, err
	}
	title, err := cleanTitle(*f.Title)
	if err != nil {
		return nil, nil, err
	}
	format := Markdown
	if f.Format != nil {
		format = *f.Format
	}
	file := slugOf(title) + format.end()
	err = s.commit(ctx, by, w, orUsual(f.Message, by, "created", title), func(ctx context.Context, r git.Repo, parent string) ([]git.Action, error) {
		if err := untaken(ctx, r, parent, title, nil); err != nil {
			return nil, err
		}
		return []git.Action{{Kind: git.Create, Path: file, Content: []byte(*f.Content)}}, nil
	})
	if err != nil {
		return nil, nil, err
	}
	p, err := s.page(ctx, w, slugOf(title), "")
	return w, p, err
}

func orUsual(given string, by actor.Actor, did, title string) string {
	if given = strings.TrimSpace(given); given != "" {
		return given
	}
	return message(by.Username, did, title)
}

// commit creates a commit. After a concurrent commit, actions is called again, so
// that no change is lost.
func (s *Service) commit(ctx context.Context, by actor.Actor, w *Wiki, message string, actions func(context.Context, git.Repo, string) ([]git.Action, error)) error {
	return s.Repos.CommitAuxRepo(ctx, by, w.auxRepo, repo.AuxRepoCommit{Message: message, Actions: actions})
}

// untaken returns an error if another page has the title, ignoring case, because
// of case-insensitive file systems of clients.
func untaken(ctx context.Context, r git.Repo, parent, title string, but *Page) error {
	if parent == "" {
		return nil
	}
	all, err := pages(ctx, r, parent)
	if err != nil {
		return err
	}
	for _, p := range all {
		if strings.EqualFold(p.Slug, slugOf(title)) && (but == nil || p.Path != but.Path) {
			return errs.Unprocessable("Duplicate page: A page with that title already exists in the file %s", p.Path)
		}
	}
	return nil
}

// Update changes a page. Requires Developer. NotFound; Forbidden; Unauthorized;
// Invalid; Unprocessable if another page has the title; Conflict or Precondition
// if the page was changed since.
func (s *Service) Update(ctx context.Context, by actor.Actor, at project.Place, slug string, f Fields) (*Wiki, *Page, error) {
	w, err := s.writable(ctx, by, at)
	if err != nil {
		return nil, nil, err
	}
	if err := f.check(); err != nil {
		return nil, nil, err
	}
	before, err := s.page(ctx, w, slug, "")
	if err != nil {
		return nil, nil, err
	}
	title := before.Slug
	if f.Title != nil && *f.Title != before.Title && slugOf(*f.Title) != before.Slug {
		if title, err = cleanTitle(titleFor(before, *f.Title)); err != nil {
			return nil, nil, err
		}
	}
	err = s.commit(ctx, by, w, orUsual(f.Message, by, "updated", titleOf(title)), func(ctx context.Context, r git.Repo, parent string) ([]git.Action, error) {
		was, err := unchanged(ctx, r, parent, slug, f)
		if err != nil {
			return nil, err
		}
		if err := untaken(ctx, r, parent, title, was); err != nil {
			return nil, err
		}
		return change(was, title, f), nil
	})
	if err != nil {
		return nil, nil, err
	}
	p, err := s.page(ctx, w, slugOf(title), "")
	return w, p, err
}

// change returns the actions on the file of a page.
func change(was *Page, title string, f Fields) []git.Action {
	file := was.Path
	name, _, _ := splitFile(was.Path)
	if slugOf(title) != was.Slug {
		name = slugOf(title)
		file = name + was.Path[len(was.Path)-len(extension(was.Path)):]
	}
	if f.Format != nil && *f.Format != was.Format {
		file = name + f.Format.end()
	}
	do := git.Action{Kind: git.Modify, Path: file}
	if f.Content != nil {
		do.Content, do.HasContent = []byte(*f.Content), true
	}
	if file != was.Path {
		do.Kind, do.From = git.Move, was.Path
	} else if f.Content == nil {
		return nil
	}
	return []git.Action{do}
}

// extension returns the file extension of a page.
func extension(file string) string {
	name, _, _ := splitFile(file)
	return file[len(name):]
}

// unchanged returns a page that has not changed since the writer read it. NotFound;
// Conflict; Precondition.
func unchanged(ctx context.Context, r git.Repo, parent, slug string, f Fields) (*Page, error) {
	if parent == "" {
		return nil, errs.NotFound("Wiki Page")
	}
	p, err := find(ctx, r, parent, slug)
	if err == nil && p == nil {
		err = errs.NotFound("Wiki Page")
	}
	if err != nil || f.Version == "" && f.Since == nil {
		return p, err
	}
	last, err := r.Log(ctx, git.LogOptions{From: []string{parent}, Paths: []string{p.Path}, Limit: 1})
	if err != nil {
		return nil, repo.Missing(err, "Wiki Page")
	}
	if len(last) == 0 {
		return p, nil
	}
	if f.Version != "" && string(last[0].ID) != f.Version {
		return nil, errs.Conflict("You are attempting to update a page that has changed since you started editing it.")
	}
	return p, errs.ChangedSince(last[0].Committer.When, f.Since)
}

// Delete deletes a page. Requires Developer. NotFound; Forbidden; Unauthorized;
// Conflict or Precondition if the page was changed since.
func (s *Service) Delete(ctx context.Context, by actor.Actor, at project.Place, slug string, f Fields) error {
	w, err := s.writable(ctx, by, at)
	if err != nil {
		return err
	}
	if _, err := s.page(ctx, w, slug, ""); err != nil {
		return err
	}
	return s.commit(ctx, by, w, orUsual(f.Message, by, "deleted", titleOf(slug)), func(ctx context.Context, r git.Repo, parent string) ([]git.Action, error) {
		was, err := unchanged(ctx, r, parent, slug, f)
		if err != nil {
			return nil, err
		}
		return []git.Action{{Kind: git.Delete, Path: was.Path}}, nil
	})
}

// MaxAttachment is the size limit of an attachment in bytes. Attachments become part of
// the history, and are held in memory while they are committed.
const MaxAttachment = 25 << 20

// Attachment is an uploaded file of a wiki.
type Attachment struct {
	Name   string
	Path   string // in the repository
	Branch string
}

// Attach adds a file to the repository of a wiki. Requires Developer. NotFound;
// Forbidden; Unauthorized; TooLarge.
func (s *Service) Attach(ctx context.Context, by actor.Actor, at project.Place, name string, size int64, content io.Reader) (*Attachment, error) {
	w, err := s.writable(ctx, by, at)
	if err != nil {
		return nil, err
	}
	if size > MaxAttachment {
		return nil, errs.TooLarge("The file is larger than %d bytes.", MaxAttachment)
	}
	text, err := io.ReadAll(io.LimitReader(content, MaxAttachment))
	if err != nil {
		return nil, err
	}
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	a := &Attachment{Name: fileName(name)}
	a.Path = uploads + hex.EncodeToString(id[:]) + "/" + a.Name
	err = s.commit(ctx, by, w, "Upload attachment "+a.Name, func(context.Context, git.Repo, string) ([]git.Action, error) {
		return []git.Action{{Kind: git.Create, Path: a.Path, Content: text}}, nil
	})
	if err != nil {
		return nil, err
	}
	r, err := s.Repos.OpenAuxRepo(w.auxRepo)
	if err != nil {
		return nil, err
	}
	a.Branch, err = r.DefaultBranch(ctx)
	return a, err
}
