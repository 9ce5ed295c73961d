package repo

import (
	"cmp"
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/filetemplate"
	"svc/internal/git"
	"svc/internal/project"
)

// FirstFiles are the files of the first commit of a new project. The zero value
// leaves the repository empty.
type FirstFiles struct {
	README    bool
	Gitignore string // key of a template
	License   string // key of a template
}

// actions returns the changes of the first commit. InvalidField if there is no such
// template.
func (f FirstFiles) actions(year int, author string, n project.NewProject) ([]git.Action, error) {
	var list []git.Action
	if f.Gitignore != "" {
		t, err := filetemplate.Get(filetemplate.Gitignores, f.Gitignore)
		if err != nil {
			return nil, errs.InvalidField("gitignore", "is not included in the list").Because(err)
		}
		list = append(list, git.Action{Kind: git.Create, Path: ".gitignore", Content: []byte(t.Content)})
	}
	if f.License != "" {
		l, err := filetemplate.FindLicense(f.License)
		if err != nil {
			return nil, errs.InvalidField("license", "is not included in the list").Because(err)
		}
		list = append(list, git.Action{Kind: git.Create, Path: "LICENSE", Content: []byte(filetemplate.Fill(l.Content, year, author, n.Name))})
	}
	return list, nil
}

// Create creates a project, with a first commit if files are chosen. The errors are
// those of project.Create, and InvalidField if the branch or a template is not
// valid.
func (s *Service) Create(ctx context.Context, by actor.Actor, n project.NewProject, first FirstFiles) (*project.Project, error) {
	files, err := first.actions(s.Now().Year(), by.Name, n)
	if err != nil {
		return nil, err
	}
	if n.Branch != "" {
		if err := git.CheckBranch(n.Branch); err != nil {
			return nil, errs.InvalidField("default_branch", "is not a valid name of a branch").Because(err)
		}
	}
	p, err := s.Projects.Create(ctx, by, n)
	if err != nil || !first.README && len(files) == 0 {
		return p, err // the repository is created on first use
	}
	if first.README {
		files = append(files, readme(p))
	}
	r, err := s.ensure(ctx, p)
	if err != nil {
		return nil, err
	}
	if err := s.firstCommit(ctx, by, p, r, files...); err != nil {
		return nil, err
	}
	return s.Projects.Get(ctx, by, project.RefTo(p.ID))
}

// readme is the README of a new project.
func readme(p *project.Project) git.Action {
	return git.Action{Kind: git.Create, Path: "README.md", Content: []byte("# " + p.Name + "\n\n" + p.Description)}
}

// firstCommit creates the default branch of an empty repository with some files.
func (s *Service) firstCommit(ctx context.Context, by actor.Actor, p *project.Project, r git.Repo, files ...git.Action) error {
	who := s.signature(by)
	first, err := r.CommitChanges(ctx, git.ChangeOptions{Actions: files, Author: who, Committer: who, Message: "Initial commit"})
	if err != nil {
		return fmt.Errorf("first commit of project %d: %w", p.ID, err)
	}
	return s.move(ctx, by, p, r, git.Update{Ref: git.Heads + cmp.Or(p.InitialBranch, UsualBranch), Old: git.ZeroOID, New: first.ID})
}
