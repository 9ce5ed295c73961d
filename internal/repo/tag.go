package repo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// Tag is a tag.
type Tag struct {
	Name      string
	Message   string // of an annotated tag
	Target    git.OID
	Commit    *git.Commit // nil if it is not a tag of a commit
	Protected bool
	CanDelete bool
	CreatedAt *time.Time // of an annotated tag
	Signature string     // of an annotated tag, verbatim

	tagger string // email address of the tagger of an annotated tag
}

// Tags lists the tags of a project, for users who can read its code. Invalid if
// the page token is not valid.
func (s *Service) Tags(ctx context.Context, by actor.Actor, ref project.Ref, f RefFilter, pg db.Paging) (*project.Project, db.Page[Tag], error) {
	var page db.Page[Tag]
	p, r, err := s.read(ctx, by, ref)
	if err != nil {
		return nil, page, err
	}
	refs, err := pageRefs(ctx, r, git.Tags, f, pg)
	if err != nil {
		return nil, page, err
	}
	page = db.Page[Tag]{More: refs.More, Last: refs.Last, Total: refs.Total, Over: refs.Over}
	page.Items, err = s.tags(ctx, by, p, r, refs.Items)
	return p, page, err
}

// Tag returns a tag, for users who can read the code of the project. NotFound.
func (s *Service) Tag(ctx context.Context, by actor.Actor, ref project.Ref, name string) (*project.Project, *Tag, error) {
	p, r, err := s.read(ctx, by, ref)
	if err != nil {
		return nil, nil, err
	}
	t, err := s.tag(ctx, by, p, r, name)
	return p, t, err
}

func (s *Service) tag(ctx context.Context, by actor.Actor, p *project.Project, r git.Repo, name string) (*Tag, error) {
	found, err := r.Ref(ctx, git.Tags+name)
	if err != nil {
		return nil, missing(err, "Tag")
	}
	list, err := s.tags(ctx, by, p, r, []git.Ref{found})
	if err != nil {
		return nil, err
	}
	return &list[0], nil
}

func (s *Service) tags(ctx context.Context, by actor.Actor, p *project.Project, r git.Repo, refs []git.Ref) ([]Tag, error) {
	list := make([]Tag, len(refs))
	if len(refs) == 0 {
		return list, nil
	}
	guard, err := s.guard(ctx, by, p)
	if err != nil {
		return nil, err
	}
	writer := s.mayWrite(by, p)
	for i, ref := range refs {
		t := Tag{Name: ref.Short(), Target: ref.ID, Protected: len(guard.tags.matching(ref.Short())) > 0}
		t.Commit, err = r.Commit(ctx, string(ref.Target))
		if err != nil && !errors.Is(err, git.ErrNotFound) {
			return nil, fmt.Errorf("commit of tag: %w", passing(err))
		}
		if ref.Tag != "" {
			note, err := r.Tag(ctx, ref.Tag)
			if err != nil {
				return nil, fmt.Errorf("read tag: %w", passing(err))
			}
			t.Message, t.Signature, t.tagger = strings.TrimRight(note.Message, "\n"), note.Signature, note.Tagger.Email
			if !note.Tagger.When.IsZero() {
				t.CreatedAt = &note.Tagger.When
			}
		}
		if writer {
			if t.CanDelete, err = guard.deletes(ctx, r, ref); err != nil {
				return nil, err
			}
		}
		list[i] = t
	}
	return list, nil
}

// NewTag has the fields of a new tag. With a message it is an annotated tag.
type NewTag struct {
	Name    string
	From    string // a revision
	Message string
}

// CreateTag creates a tag, for Developers and above, subject to tag protection.
// Invalid if the name is not valid or exists, or if the revision does not
// exist.
func (s *Service) CreateTag(ctx context.Context, by actor.Actor, ref project.Ref, n NewTag) (*project.Project, *Tag, error) {
	p, r, err := s.write(ctx, by, ref)
	if err != nil {
		return nil, nil, err
	}
	if err := git.CheckRef(git.Tags + n.Name); err != nil {
		return nil, nil, errs.Refused("Tag name invalid").Because(err)
	}
	if _, err := r.Ref(ctx, git.Tags+n.Name); err == nil {
		return nil, nil, errs.Refused("Tag %s already exists", n.Name)
	}
	id, kind, err := seen(by, p, r).Resolve(ctx, n.From)
	if errs.Is(missing(err, "Ref"), errs.KindNotFound) {
		return nil, nil, errs.Refused("Target %s is invalid", n.From).Because(err)
	}
	if err != nil {
		return nil, nil, passing(err)
	}
	if n.Message != "" {
		id, err = r.CreateTag(ctx, git.TagOptions{Name: n.Name, Target: id, Type: kind, Message: n.Message, Tagger: s.signature(by)})
		if err != nil {
			return nil, nil, fmt.Errorf("create tag: %w", passing(err))
		}
	}
	if err := s.move(ctx, by, p, r, git.Update{Ref: git.Tags + n.Name, Old: git.ZeroOID, New: id}); err != nil {
		return nil, nil, err
	}
	t, err := s.tag(ctx, by, p, r, n.Name)
	return p, t, err
}

// signature returns the name and email address of the actor for git.
func (s *Service) signature(by actor.Actor) git.Signature {
	return git.Signature{Name: by.Name, Email: by.CommitEmail, When: s.Now()}
}

// DeleteTag deletes a tag, for Developers and above; a protected tag, for
// Maintainers and above. NotFound, Forbidden.
func (s *Service) DeleteTag(ctx context.Context, by actor.Actor, ref project.Ref, name string) error {
	p, r, err := s.write(ctx, by, ref)
	if err != nil {
		return err
	}
	found, err := r.Ref(ctx, git.Tags+name)
	if err != nil {
		return missing(err, "Tag")
	}
	return s.move(ctx, by, p, r, git.Update{Ref: found.Name, Old: found.ID, New: git.ZeroOID})
}
