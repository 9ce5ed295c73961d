package plan

import (
	"context"
	"strconv"
	"strings"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/repo"
)

// defaultBranchTemplate is used if the project has no issue_branch_template.
const defaultBranchTemplate = "%{id}-%{title}"

// maxIssueBranch is the maximum length of a generated branch name in bytes.
const maxIssueBranch = 100

// BranchName returns the name of a new branch for the issue, according to the
// template of the project. The title of a confidential issue is left out.
func (i *Issue) BranchName(proj *project.Project) string {
	title := project.PathFrom(i.Title)
	if i.Confidential {
		title = "confidential-issue"
	}
	name := strings.NewReplacer("%{id}", strconv.FormatInt(i.IID, 10), "%{title}", title).Replace(branchTemplate(proj))
	if len(name) > maxIssueBranch {
		name = strings.ToValidUTF8(name[:maxIssueBranch], "")
	}
	return strings.TrimRight(name, "-/.")
}

func branchTemplate(proj *project.Project) string {
	if proj.Settings.IssueBranchTemplate == "" {
		return defaultBranchTemplate
	}
	return proj.Settings.IssueBranchTemplate
}

// branchPrefix returns the prefix of the branch names of the issue. It is empty if
// the template does not contain the issue number, or contains the title before it.
func (i *Issue) branchPrefix(proj *project.Project) string {
	before, after, found := strings.Cut(branchTemplate(proj), "%{id}")
	if !found || strings.Contains(before, "%{title}") {
		return ""
	}
	sep := "-"
	if after != "" && after[0] != '%' {
		sep = after[:1]
	}
	return before + strconv.FormatInt(i.IID, 10) + sep
}

// IssueBranches are the branches of an issue.
type IssueBranches struct {
	Names  []string // at most maxIssueBranches
	New    string   // suggested name for a new branch, which does not exist yet
	Create bool     // the actor may push branches
}

// maxIssueBranches is the maximum number of branches shown for an issue.
const maxIssueBranches = 20

// IssueBranches returns the branches whose names start with the prefix of the
// issue, and a name for a new one. Requires read access to the code. NotFound.
func (s *Service) IssueBranches(ctx context.Context, by actor.Actor, ref project.Ref, i *Issue) (*IssueBranches, error) {
	p, err := s.Projects.ReadCode(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	found := &IssueBranches{New: i.BranchName(p), Create: p.Can(by).Push && p.DefaultBranch != ""}
	prefixes := []string{strconv.FormatInt(i.IID, 10) + "-"}
	if custom := i.branchPrefix(p); custom != "" && custom != prefixes[0] {
		prefixes = append(prefixes, custom)
	}
	for _, prefix := range prefixes {
		page, err := s.Repos.RefNames(ctx, by, ref, repo.BranchRef, prefix, db.Paging{Limit: maxIssueBranches})
		if err != nil {
			return nil, err
		}
		for _, name := range page.Items {
			if strings.HasPrefix(name, prefix) && len(found.Names) < maxIssueBranches {
				found.Names = append(found.Names, name)
			}
		}
	}
	base := found.New
	for n := 2; n < 100; n++ {
		taken, err := s.Repos.HasRef(ctx, p, found.New, false)
		if err != nil && !errs.Is(err, errs.KindNotFound) {
			return nil, err
		}
		if !taken {
			break
		}
		found.New = base + "-" + strconv.Itoa(n)
	}
	return found, nil
}
