package compat

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// TestGoClientHosting manages groups, projects and repositories. All parts use one
// server in turn, each with different names.
func TestGoClientHosting(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		h := newHosting(t, s)
		for _, part := range []struct {
			name string
			run  func(*testing.T, *hosting)
		}{
			{"projects", goProjects}, {"project_lists", goProjectLists}, {"project_moves", goProjectMoves}, {"forks", goForks},
			{"groups", goGroups}, {"group_moves", goGroupMoves}, {"group_transfer", goGroupTransfer}, {"namespaces", goNamespaces},
			{"project_members", goProjectMembers}, {"group_members", goGroupMembers}, {"access_requests", goAccessRequests},
			{"project_tokens", goProjectTokens}, {"group_tokens", goGroupTokens}, {"deploy_tokens", goDeployTokens}, {"deploy_keys", goDeployKeys},
			{"protected_branches", goProtectedBranches}, {"protected_tags", goProtectedTags}, {"push_rules", goPushRules}, {"mirrors", goMirrors},
			{"branches", goBranches}, {"tags", goTags}, {"commits", goCommits}, {"picks", goPicks}, {"commit_notes", goCommitNotes}, {"files", goFiles},
			{"tree", goTree}, {"archive", goArchive}, {"compare", goCompare}, {"changelog", goChangelog},
			{"audit", goProjectAudit}, {"git", goGit}, {"lfs", goLFS}, {"exactness", goExactness}, {"configuration", goConfiguration},
		} {
			t.Run(part.name, func(t *testing.T) { part.run(t, h) })
		}
	})
}

// hosting is a server with an administrator and two users.
type hosting struct {
	s              *server
	root, ada, bob *gitlab.Client
	adaUser        *gitlab.User
	bobUser        *gitlab.User
	adaToken       string
}

func newHosting(t *testing.T, s *server) *hosting {
	t.Helper()
	h := &hosting{s: s, root: s.client(t, rootToken)}
	h.adaUser, h.bobUser = newUser(t, h.root, "ada"), newUser(t, h.root, "bob")
	h.adaToken = newToken(t, h.root, h.adaUser.ID, "api", "write_repository").Token
	h.ada = s.client(t, h.adaToken)
	h.bob = s.client(t, newToken(t, h.root, h.bobUser.ID, "api").Token)
	return h
}

// group creates a group as Ada.
func (h *hosting) group(t *testing.T, path string) *gitlab.Group {
	t.Helper()
	return ask(h.ada.Groups.CreateGroup(&gitlab.CreateGroupOptions{Name: new("Group " + path), Path: new(path)})).done(t, http.StatusCreated)
}

// project creates a project as Ada whose default branch, main, has a README.
func (h *hosting) project(t *testing.T, path string) *gitlab.Project {
	t.Helper()
	return ask(h.ada.Projects.CreateProject(&gitlab.CreateProjectOptions{
		Name: new(path), Path: new(path), InitializeWithReadme: new(true), DefaultBranch: new("main"),
	})).done(t, http.StatusCreated)
}

// write commits a file and returns the commit.
func (h *hosting) write(t *testing.T, p *gitlab.Project, branch, file, content, message string) *gitlab.Commit {
	t.Helper()
	return h.commit(t, p, &gitlab.CreateCommitOptions{Branch: new(branch), CommitMessage: new(message), Actions: []*gitlab.CommitActionOptions{
		{Action: new(gitlab.FileCreate), FilePath: new(file), Content: new(content)},
	}})
}

func (h *hosting) commit(t *testing.T, p *gitlab.Project, o *gitlab.CreateCommitOptions) *gitlab.Commit {
	t.Helper()
	return ask(h.ada.Commits.CreateCommit(p.ID, o)).done(t, http.StatusCreated)
}

// head returns the last commit of a branch.
func (h *hosting) head(t *testing.T, p *gitlab.Project, branch string) string {
	t.Helper()
	return ask(h.ada.Branches.GetBranch(p.ID, branch)).ok(t).Commit.ID
}

// mapped returns one value for each element.
func mapped[T, V any](list []T, value func(T) V) []V {
	values := make([]V, len(list))
	for i, v := range list {
		values[i] = value(v)
	}
	return values
}

func projectPath(p *gitlab.Project) string { return p.PathWithNamespace }
func groupPath(g *gitlab.Group) string     { return g.FullPath }

// scanned returns the elements of all pages of a list.
func scanned[T any](t *testing.T, list func(gitlab.PaginationOptionFunc) ([]T, *gitlab.Response, error)) []T {
	t.Helper()
	var all []T
	for v, err := range gitlab.Scan2(list) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

// level formats a role like the API.
func level(l *gitlab.ProjectAccess) string {
	if l == nil {
		return "none"
	}
	return fmt.Sprint(int64(l.AccessLevel))
}

// later returns a date within the maximum lifetime of a token.
func later() gitlab.ISOTime { return gitlab.ISOTime(time.Now().UTC().AddDate(0, 0, 300)) }
