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

// defaultBranchTemplate is the issue_branch_template of a project that has none.
const defaultBranchTemplate = "%{id}-%{title}"

// maxIssueBranch is the maximum length of a branch name that is made for an
// issue.
const maxIssueBranch = 100

// BranchName returns the name of a branch for the issue in its project, by the
// template of the project. The title of a confidential issue is left out.
func (i *Issue) BranchName(in *project.Project) string {
	title := project.PathFrom(i.Title)
	if i.Confidential {
		title = "confidential-issue"
	}
	name := strings.NewReplacer("%{id}", strconv.FormatInt(i.IID, 10), "%{title}", title).Replace(branchTemplate(in))
	if len(name) > maxIssueBranch {
		name = strings.ToValidUTF8(name[:maxIssueBranch], "")
	}
	return strings.TrimRight(name, "-/.")
}

func branchTemplate(in *project.Project) string {
	if in.Settings.IssueBranchTemplate == "" {
		return defaultBranchTemplate
	}
	return in.Settings.IssueBranchTemplate
}

// branchPrefix is what names of branches for the issue begin with; empty if the
// template does not start with the number of the issue or a fixed text before
// it.
func (i *Issue) branchPrefix(in *project.Project) string {
	before, after, found := strings.Cut(branchTemplate(in), "%{id}")
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
	New    string   // name for another one, which does not exist yet
	Create bool     // the actor may push branches
}

// maxIssueBranches is the maximum number of branches that an issue shows.
const maxIssueBranches = 20

// IssueBranches returns the branches whose names begin as those for the issue
// do, and the name of a new one, for users who can read the issue and the code.
// NotFound.
func (s *Service) IssueBranches(ctx context.Context, by actor.Actor, ref project.Ref, i *Issue) (*IssueBranches, error) {
	p, err := s.Projects.ReadCode(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	found := &IssueBranches{New: i.BranchName(p), Create: p.Can(by).Push && p.DefaultBranch != ""}
	prefixes := []string{strconv.FormatInt(i.IID, 10) + "-"}
	if own := i.branchPrefix(p); own != "" && own != prefixes[0] {
		prefixes = append(prefixes, own)
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
