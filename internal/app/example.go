package app

import (
	"context"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/repo"
	"svc/internal/user"
)

// exampleFiles are the files of the example project, below example/.
//
//go:embed all:example
var exampleFiles embed.FS

// exampleSetting is the row with the state of the example: missing, begun or done.
// The example is created once; it is not recreated if it is deleted.
const exampleSetting = "example"

const (
	exampleBegun = "begun"
	exampleDone  = "done"
)

// seedExample creates a public group and a project with a pipeline for newcomers,
// if the operator asks for it and the instance is empty. It completes an
// interrupted attempt. Failures are not fatal.
func (s *Server) seedExample(ctx context.Context, out io.Writer) {
	if !s.Config.Example {
		return
	}
	made, err := s.example(ctx)
	if err != nil {
		s.Log.Error("the example project was not created", "error", err)
		return
	}
	if made {
		fmt.Fprintf(out, "Example project: %s/example/hello/-/pipelines\n\n",
			s.Config.ExternalURL)
	}
}

func (s *Server) example(ctx context.Context) (made bool, err error) {
	state, err := s.exampleState(ctx)
	if err != nil || state == exampleDone {
		return false, err
	}
	if state == "" {
		empty, err := s.untouched(ctx)
		if err != nil || !empty {
			return false, err
		}
		if err := s.setExample(ctx, exampleBegun); err != nil {
			return false, err
		}
	}
	root, err := s.Users.Become(ctx, actor.System(), user.RootName)
	if err != nil {
		return false, fmt.Errorf("the first administrator: %w", err)
	}
	if err := s.makeExample(ctx, root); err != nil {
		return false, err
	}
	return true, s.setExample(ctx, exampleDone)
}

// untouched reports whether the instance is unused: it has only the accounts of
// the first start, no groups and no projects.
func (s *Server) untouched(ctx context.Context) (bool, error) {
	few := db.Paging{Limit: 2}
	users, err := s.Users.List(ctx, actor.System(), user.Filter{Humans: true}, user.Sort{By: "id"}, few)
	if err != nil {
		return false, err
	}
	for _, u := range users.Items {
		if u.Username != user.RootName {
			return false, nil
		}
	}
	projects, err := s.Projects.List(ctx, actor.System(), project.Filter{}, project.Sort{By: "id"}, few)
	if err != nil || len(projects.Items) > 0 {
		return false, err
	}
	groups, err := s.Projects.Groups(ctx, actor.System(), project.GroupsFilter{AllAvailable: true}, project.Sort{By: "id"}, few)
	return err == nil && len(groups.Items) == 0, err
}

// makeExample creates the missing parts of the example.
func (s *Server) makeExample(ctx context.Context, by actor.Actor) error {
	public := project.Public
	group, err := s.Projects.Group(ctx, by, "example")
	if errs.Is(err, errs.KindNotFound) {
		group, err = s.Projects.CreateGroup(ctx, by, project.NewGroup{
			Name: "Example", Path: "example", Visibility: &public, Description: "An example project to explore. You can delete it at any time.",
		})
	}
	if err != nil {
		return fmt.Errorf("example group: %w", err)
	}
	hello, err := s.Projects.Get(ctx, by, "example/hello")
	if errs.Is(err, errs.KindNotFound) {
		about := "A small program with a test and a pipeline"
		hello, err = s.Projects.Create(ctx, by, project.NewProject{
			Name: "hello", NamespaceID: &group.ID, Visibility: &public, Fields: project.Fields{Description: &about},
		})
	}
	if err != nil {
		return fmt.Errorf("example project: %w", err)
	}
	if hello.DefaultBranch != "" {
		return nil
	}
	actions, err := exampleActions()
	if err != nil {
		return err
	}
	_, _, err = s.Repos.CreateCommit(ctx, by, project.RefTo(hello.ID), repo.NewCommit{
		Branch: "main", Message: "Say hello\n\nA program, a test, and a pipeline that runs both.\n", Actions: actions,
	}, false)
	if err != nil {
		return fmt.Errorf("example commit: %w", err)
	}
	return nil
}

func exampleActions() ([]repo.FileAction, error) {
	var actions []repo.FileAction
	err := fs.WalkDir(exampleFiles, "example", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := exampleFiles.ReadFile(path)
		runs := strings.HasSuffix(path, ".sh")
		actions = append(actions, repo.FileAction{
			Kind: git.Create, Path: strings.TrimPrefix(path, "example/"), Content: text, HasContent: true, Executable: &runs,
		})
		return err
	})
	return actions, err
}
