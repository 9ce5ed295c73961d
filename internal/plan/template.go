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
	maxTemplates = 100       // of a project
	maxTemplate  = 256 << 10 // size of one in bytes
	// DefaultTemplate is the name of the template of new objects.
	DefaultTemplate = "Default"
)

// part is the part of a project that objects of a kind belong to.
func (k Kind) part() project.Part {
	if k == MergeKind {
		return project.MergePart
	}
	return project.IssuePart
}

func (k Kind) templates() string { return ".gitlab/" + k.table() + "_templates" }

// DescriptionTemplates lists the names of the description templates of a project,
// for users who can read its code and the objects of the kind. NotFound.
func (s *Service) DescriptionTemplates(ctx context.Context, by actor.Actor, ref project.Ref, kind Kind) ([]string, error) {
	in, err := s.Projects.RequireView(ctx, by, ref, kind.part())
	if err != nil {
		return nil, err
	}
	if err := in.View(by, project.CodePart); err != nil {
		return nil, err
	}
	list := []string{}
	if in.DefaultBranch == "" {
		return list, nil
	}
	page, err := s.Repos.Tree(ctx, by, project.RefTo(in.ID), repo.TreeOptions{Ref: in.DefaultBranch, Path: kind.templates(), Limit: 10 * maxTemplates})
	if errs.Is(err, errs.KindNotFound) {
		return list, nil
	}
	if err != nil {
		return nil, fmt.Errorf("description templates of project %d: %w", in.ID, err)
	}
	for _, e := range page.Entries {
		if name, ok := strings.CutSuffix(e.Name, ".md"); ok && name != "" && e.Type == git.TypeBlob && len(list) < maxTemplates {
			list = append(list, name)
		}
	}
	slices.SortFunc(list, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	return list, nil
}

// DescriptionTemplate returns a description template of a project, for users who
// can read its code and the objects of the kind. NotFound; TooLarge.
func (s *Service) DescriptionTemplate(ctx context.Context, by actor.Actor, ref project.Ref, kind Kind, name string) (string, error) {
	in, err := s.Projects.RequireView(ctx, by, ref, kind.part())
	if err != nil {
		return "", err
	}
	if err := in.View(by, project.CodePart); err != nil {
		return "", err
	}
	if in.DefaultBranch == "" || name == "" || strings.ContainsAny(name, "/\\") {
		return "", errs.NotFound("Template")
	}
	file, err := s.Repos.FileBlob(ctx, by, project.RefTo(in.ID), kind.templates()+"/"+name+".md", in.DefaultBranch)
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

// DefaultDescription returns the description that a new object of a project starts
// with: the one of the project settings, or the template Default. It is empty if
// there is none that the actor can read.
func (s *Service) DefaultDescription(ctx context.Context, by actor.Actor, in *project.Project, kind Kind) (string, error) {
	text := in.Settings.IssuesTemplate
	if kind == MergeKind {
		text = in.Settings.MergeRequestsTemplate
	}
	if text != "" {
		return text, nil
	}
	text, err := s.DescriptionTemplate(ctx, by, project.RefTo(in.ID), kind, DefaultTemplate)
	if errs.IsRefusal(err) {
		return "", nil
	}
	return text, err
}
