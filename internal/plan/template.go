package plan

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/repo"
)

// Description templates are Markdown files on the default branch of a project:
// .gitlab/issue_templates/Bug.md and .gitlab/merge_request_templates/Default.md.

const (
	maxTemplates = 100       // maximum number per project
	maxTemplate  = 256 << 10 // maximum size in bytes
	// DefaultTemplate is the name of the template for new objects.
	DefaultTemplate = "Default"
)

// part returns the project feature that objects of a kind belong to.
func (k Kind) part() project.Part {
	if k == MergeKind {
		return project.MergePart
	}
	return project.IssuePart
}

func (k Kind) templates() string { return ".gitlab/" + k.table() + "_templates" }

// DescriptionTemplates lists the names of the description templates of a project.
// Requires read access to the code and to the objects of the kind. NotFound.
func (s *Service) DescriptionTemplates(ctx context.Context, by actor.Actor, ref project.Ref, kind Kind) ([]string, error) {
	proj, err := s.Projects.RequireView(ctx, by, ref, kind.part())
	if err != nil {
		return nil, err
	}
	if err := proj.View(by, project.CodePart); err != nil {
		return nil, err
	}
	list := []string{}
	if proj.DefaultBranch == "" {
		return list, nil
	}
	page, err := s.Repos.Tree(ctx, by, project.RefTo(proj.ID), repo.TreeOptions{Ref: proj.DefaultBranch, Path: kind.templates(), Limit: 10 * maxTemplates})
	if errs.Is(err, errs.KindNotFound) {
		return list, nil
	}
	if err != nil {
		return nil, fmt.Errorf("description templates of project %d: %w", proj.ID, err)
	}
	for _, e := range page.Entries {
		if name, ok := strings.CutSuffix(e.Name, ".md"); ok && name != "" && e.Type == git.TypeBlob && len(list) < maxTemplates {
			list = append(list, name)
		}
	}
	slices.SortFunc(list, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	return list, nil
}

// DescriptionTemplate returns a description template of a project. Requires read
// access to the code and to the objects of the kind. NotFound; TooLarge.
func (s *Service) DescriptionTemplate(ctx context.Context, by actor.Actor, ref project.Ref, kind Kind, name string) (string, error) {
	proj, err := s.Projects.RequireView(ctx, by, ref, kind.part())
	if err != nil {
		return "", err
	}
	if err := proj.View(by, project.CodePart); err != nil {
		return "", err
	}
	if proj.DefaultBranch == "" || name == "" || strings.ContainsAny(name, "/\\") {
		return "", errs.NotFound("Template")
	}
	file, err := s.Repos.FileBlob(ctx, by, project.RefTo(proj.ID), kind.templates()+"/"+name+".md", proj.DefaultBranch)
	if errs.Is(err, errs.KindNotFound) {
		return "", errs.NotFound("Template")
	}
	if err != nil {
		return "", err
	}
	if file.Size > maxTemplate {
		return "", errs.TooLarge("The template is larger than %d bytes.", maxTemplate)
	}
	content, err := file.Open(ctx)
	if err != nil {
		return "", fmt.Errorf("read template %s: %w", file.Path, err)
	}
	defer content.Close()
	text, err := io.ReadAll(io.LimitReader(content, maxTemplate))
	if err != nil {
		return "", fmt.Errorf("read template %s: %w", file.Path, err)
	}
	return strings.ToValidUTF8(strings.ReplaceAll(string(text), "\x00", ""), "�"), nil
}

// DefaultDescription returns the default description of a new object of a project:
// from the project settings, or the template Default. It is empty if there is none
// that the actor can read.
func (s *Service) DefaultDescription(ctx context.Context, by actor.Actor, proj *project.Project, kind Kind) (string, error) {
	text := proj.Settings.IssuesTemplate
	if kind == MergeKind {
		text = proj.Settings.MergeRequestsTemplate
	}
	if text != "" {
		return text, nil
	}
	text, err := s.DescriptionTemplate(ctx, by, project.RefTo(proj.ID), kind, DefaultTemplate)
	if errs.IsRefusal(err) {
		return "", nil
	}
	return text, err
}
