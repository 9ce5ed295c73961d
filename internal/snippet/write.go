package snippet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"svc/internal/activity"
	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/patch"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/repo"
)

const (
	// MaxFiles is the maximum number of files of a snippet.
	MaxFiles = 10

	maxTitle       = 255     // characters
	maxDescription = 1 << 20 // bytes
	maxAgent       = 512     // bytes that are kept of a user agent
)

// Fields are the fields of a snippet; nil leaves a field as it is.
type Fields struct {
	Title       *string
	Description *string
	Visibility  *project.Visibility
	Files       []FileChange
	// FileName and Content change the one file that a snippet has, or the first
	// of several.
	FileName, Content *string
	UserAgent         string // of the creator
}

// FileChange is a change to a file of a snippet.
type FileChange struct {
	Kind       git.ActionKind // Create, Modify, Move or Delete
	Path       string         // empty: a new file gets a generated name
	From       string         // of a move
	Content    string
	HasContent bool
}

// check validates the fields of a snippet.
func (s *Snippet) check() error {
	wrong := errs.Fields{}
	switch {
	case strings.TrimSpace(s.Title) == "":
		wrong.Set("title", "can't be blank")
	case utf8.RuneCountInString(s.Title) > maxTitle:
		wrong.Set("title", "is too long (maximum is %d characters)", maxTitle)
	}
	if len(s.Description) > maxDescription {
		wrong.Set("description", "is too long")
	}
	if s.Visibility != project.Private && s.Visibility != project.Internal && s.Visibility != project.Public {
		wrong.Set("visibility_level", "is not included in the list")
	}
	return wrong.Err()
}

func (s *Snippet) apply(f Fields) {
	patch.Set(&s.Title, f.Title)
	patch.Set(&s.Description, f.Description)
	patch.Set(&s.Visibility, f.Visibility)
}

// Create creates a snippet with its files. In a project it requires Reporter,
// otherwise a user who is not external. NotFound; Forbidden; Unauthorized;
// Invalid; TooLarge.
func (s *Service) Create(ctx context.Context, by actor.Actor, in *project.Ref, f Fields) (*Snippet, error) {
	n := &Snippet{AuthorID: by.ID, Visibility: project.Private, UserAgent: cut(f.UserAgent), IPAddress: by.IP, CreatedAt: s.Now(), UpdatedAt: s.Now()}
	a := &repo.AuxRepo{Kind: repo.SnippetAuxRepo}
	if in != nil {
		p, err := s.Projects.RequireView(ctx, by, *in, project.SnippetPart)
		if err != nil {
			return nil, err
		}
		if err := p.Change(by, project.SnippetPart, project.Reporter); err != nil {
			return nil, err
		}
		n.In, n.ProjectID, a.Storage = p, &p.ID, p.Storage
	}
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	if !MayCreate(by, n.In) {
		return nil, errs.Forbidden("")
	}
	n.apply(f)
	if err := n.check(); err != nil {
		return nil, err
	}
	if len(f.Files) == 0 {
		return nil, errs.InvalidField("snippet_files", "can't be blank")
	}
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := insertSnippet(ctx, tx, n); err != nil {
			return err
		}
		a.SnippetID = &n.ID
		return s.Repos.AddAuxRepo(ctx, tx, a)
	})
	if err != nil {
		return nil, fmt.Errorf("create snippet: %w", err)
	}
	// The snippet is not visible before its files are committed: see follow.
	if err := s.commit(ctx, by, a, "Initial commit", f.Files); err != nil {
		return nil, errors.Join(err, s.discard(context.WithoutCancel(ctx), n.ID))
	}
	return s.Get(ctx, by, nil, n.ID)
}

// discard deletes a new snippet whose files could not be committed.
func (s *Service) discard(ctx context.Context, id int64) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := deleteSnippet(ctx, tx, id); err != nil {
			return err
		}
		return s.Repos.DropOrphans(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("discard snippet %d: %w", id, err)
	}
	return nil
}

// cut truncates a user agent.
func cut(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text[:min(len(text), maxAgent)], "\x00", ""), "")
}

// commit changes the files of a snippet.
func (s *Service) commit(ctx context.Context, by actor.Actor, a *repo.AuxRepo, message string, changes []FileChange) error {
	return s.Repos.CommitAuxRepo(ctx, by, a, repo.AuxRepoCommit{Message: message, Actions: func(ctx context.Context, r git.Repo, parent string) ([]git.Action, error) {
		there, err := paths(ctx, r, parent)
		if err != nil {
			return nil, err
		}
		return actions(there, changes)
	}})
}

// actions converts file changes to git actions. New files without a name get a
// generated one.
func actions(there []string, changes []FileChange) ([]git.Action, error) {
	taken := slices.Clone(there)
	for _, c := range changes {
		taken = append(taken, c.Path)
	}
	var list []git.Action
	for i, c := range changes {
		if c.Kind == git.Create && c.Path == "" {
			for n := i + 1; ; n++ {
				if c.Path = fmt.Sprintf("snippetfile%d.txt", n); !slices.Contains(taken, c.Path) {
					break
				}
			}
			taken = append(taken, c.Path)
		}
		if c.Kind == git.Move && c.From == "" {
			return nil, errs.Refused("You must provide a previous path")
		}
		list = append(list, git.Action{Kind: c.Kind, Path: c.Path, From: c.From, Content: []byte(c.Content), HasContent: c.HasContent})
	}
	return list, nil
}

// Update changes a snippet. Requires its author or, in a project, Maintainer.
// NotFound; Forbidden; Unauthorized; Invalid; TooLarge; Precondition if it was
// modified since.
func (s *Service) Update(ctx context.Context, by actor.Actor, in *project.Ref, id int64, f Fields, unmodifiedSince *time.Time) (*Snippet, error) {
	was, err := s.changeable(ctx, by, in, id)
	if err != nil {
		return nil, err
	}
	if err := errs.ChangedSince(was.UpdatedAt, unmodifiedSince); err != nil {
		return nil, err
	}
	now := *was
	now.apply(f)
	if err := now.check(); err != nil {
		return nil, err
	}
	if first := f.first(was); first != nil {
		f.Files = append(f.Files, *first)
	}
	if len(f.Files) > 0 {
		a, err := s.Repos.SnippetAuxRepo(ctx, id)
		if err == nil && a == nil {
			err = errs.NotFound("Snippet")
		}
		if err != nil {
			return nil, err
		}
		if err := s.commit(ctx, by, a, "Update snippet", f.Files); err != nil {
			return nil, err
		}
	}
	if now.Title != was.Title || now.Description != was.Description || now.Visibility != was.Visibility {
		if err := s.save(ctx, by, id, f, len(f.Files) == 0); err != nil {
			return nil, err
		}
	}
	return s.Get(ctx, by, nil, id)
}

// first returns the change to the first file; nil if there is none.
func (f Fields) first(was *Snippet) *FileChange {
	if f.FileName == nil && f.Content == nil {
		return nil
	}
	c := FileChange{Kind: git.Modify, Path: was.Files[0]}
	if f.FileName != nil && *f.FileName != c.Path {
		c.Kind, c.From, c.Path = git.Move, c.Path, *f.FileName
	}
	if f.Content != nil {
		c.Content, c.HasContent = *f.Content, true
	}
	if c.Kind == git.Modify && !c.HasContent {
		return nil
	}
	return &c
}

// save writes the fields of a snippet and records its events.
func (s *Service) save(ctx context.Context, by actor.Actor, id int64, f Fields, publish bool) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		was, err := lockSnippet(ctx, tx, id)
		if err != nil {
			return err
		}
		now := *was
		now.apply(f)
		now.UpdatedAt = s.Now()
		if err := saveSnippet(ctx, tx, &now); err != nil {
			return err
		}
		if err := activity.Retitle(ctx, tx, now.subject(), now.Title); err != nil {
			return err
		}
		if err := activity.Readdress(ctx, tx, now.subject(), was.audience(), now.audience()); err != nil {
			return err
		}
		if !publish {
			return nil
		}
		return now.record(ctx, tx, by, activity.Updated, s.Now())
	})
	if err != nil {
		return fmt.Errorf("update snippet %d: %w", id, err)
	}
	return nil
}

// record adds an event about a snippet to the activity feed.
func (s *Snippet) record(ctx context.Context, tx *db.Tx, by actor.Actor, what activity.Action, at time.Time) error {
	return activity.Record(ctx, tx, activity.Event{
		ProjectID: s.ProjectID, AuthorID: by.ID, Action: what, Audience: s.audience(), Subject: s.subject(),
		TargetType: "Snippet", TargetID: &s.ID, TargetIID: &s.ID, TargetTitle: s.Title, CreatedAt: at,
	})
}

// Delete deletes a snippet. Permissions are those of Update. NotFound; Forbidden;
// Unauthorized; Precondition if it was modified since.
func (s *Service) Delete(ctx context.Context, by actor.Actor, in *project.Ref, id int64, unmodifiedSince *time.Time) error {
	found, err := s.changeable(ctx, by, in, id)
	if err != nil {
		return err
	}
	if err := errs.ChangedSince(found.UpdatedAt, unmodifiedSince); err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := deleteSnippet(ctx, tx, id); err != nil {
			return err
		}
		if err := plan.Forget(ctx, tx, Kind, id); err != nil {
			return err
		}
		if found.ProjectID != nil {
			if err := s.Repos.SumAuxRepos(ctx, tx, *found.ProjectID); err != nil {
				return err
			}
		}
		return s.Repos.DropOrphans(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("delete snippet %d: %w", id, db.NotFound(err, "Snippet"))
	}
	return nil
}

// Agent returns a snippet with the user agent and IP address of its creator.
// Requires an administrator. NotFound.
func (s *Service) Agent(ctx context.Context, by actor.Actor, in *project.Ref, id int64) (*Snippet, error) {
	if in != nil {
		if _, err := s.Projects.RequireView(ctx, by, *in, project.SnippetPart); err != nil {
			return nil, err
		}
	}
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	found, err := s.Get(ctx, by, in, id)
	if err != nil {
		return nil, err
	}
	if found.UserAgent == "" && found.IPAddress == "" {
		return nil, errs.NotFound("User Agent Detail")
	}
	return found, nil
}
