package compat

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"net/http"
	"strconv"
	"testing"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

func goProjects(t *testing.T, h *hosting) {
	p := ask(h.ada.Projects.CreateProject(&gitlab.CreateProjectOptions{
		Name: new("Analytical Engine"), Description: new("counts"), Visibility: new(gitlab.PublicVisibility),
		Topics: &[]string{"brass", "steam"}, InitializeWithReadme: new(true), DefaultBranch: new("trunk"),
	})).done(t, http.StatusCreated)
	same(t, "a new project", []any{p.Name, p.Path, p.PathWithNamespace, p.NameWithNamespace, p.Description, p.Visibility, p.DefaultBranch},
		[]any{"Analytical Engine", "analytical-engine", "ada/analytical-engine", "Name of ada / Analytical Engine", "counts", gitlab.PublicVisibility, "trunk"})
	same(t, "topics", p.Topics, []string{"brass", "steam"})
	same(t, "addresses", []string{p.WebURL, p.HTTPURLToRepo, p.Links.Self, p.Links.Members}, []string{
		h.s.url + "/ada/analytical-engine", h.s.url + "/ada/analytical-engine.git",
		h.s.url + "/api/v4/projects/" + strconv.FormatInt(p.ID, 10), h.s.url + "/api/v4/projects/" + strconv.FormatInt(p.ID, 10) + "/members",
	})
	same(t, "namespace", []string{p.Namespace.Kind, p.Namespace.FullPath}, []string{"user", "ada"})
	same(t, "owner, creator", []any{p.Owner.ID, p.CreatorID}, []any{h.adaUser.ID, h.adaUser.ID})
	same(t, "own level", level(p.Permissions.ProjectAccess), "50")
	same(t, "empty, archived, stars, forks", []any{p.EmptyRepo, p.Archived, p.StarCount, p.ForksCount}, []any{false, false, int64(0), int64(0)})
	recent(t, "created_at", p.CreatedAt)
	recent(t, "last_activity_at", p.LastActivityAt)

	same(t, "by id", ask(h.ada.Projects.GetProject(p.ID, nil)).ok(t), p)
	same(t, "by path", ask(h.ada.Projects.GetProject("ada/analytical-engine", nil)).ok(t), p)
	seen := ask(h.bob.Projects.GetProject("ada/analytical-engine", nil)).ok(t)
	if seen.ID != p.ID || seen.Permissions.ProjectAccess != nil || seen.Permissions.GroupAccess != nil {
		t.Errorf("a stranger sees %+v with permissions %+v", seen, seen.Permissions)
	}
	waitFor(t, "the commit is counted", func() bool {
		counted := ask(h.ada.Projects.GetProject(p.ID, &gitlab.GetProjectOptions{Statistics: new(true)})).ok(t)
		return counted.Statistics.CommitCount == 1 && counted.Statistics.RepositorySize > 0
	})

	ask(h.ada.Projects.CreateProject(&gitlab.CreateProjectOptions{Path: new("analytical-engine")})).
		refused(t, http.StatusBadRequest, "{message: {path: [has already been taken]}}")
	ask(h.ada.Projects.CreateProject(&gitlab.CreateProjectOptions{})).refused(t, http.StatusBadRequest, "{error: name, path are missing, at least one parameter must be provided}")
	ask(h.ada.Projects.GetProject("ada/nothing", nil)).missing(t)
	goProjectChange(t, h, p)
	goProjectPicture(t, h, p)
	goProjectLanguages(t, h, p)

	send(h.bob.Projects.DeleteProject(p.ID, nil)).refused(t, http.StatusForbidden, "{message: 403 Forbidden}")
	send(h.ada.Projects.DeleteProject(p.ID, nil)).done(t, http.StatusAccepted)
	goProjectRestore(t, h, p.ID)
	ask(h.ada.Projects.GetProject(p.ID, nil)).missing(t)
	ask(h.ada.Projects.CreateProject(&gitlab.CreateProjectOptions{Path: new("analytical-engine")})).done(t, http.StatusCreated)
}

// goProjectRestore requires a project that is marked for deletion. It restores the
// project, and then deletes it permanently.
func goProjectRestore(t *testing.T, h *hosting, id int64) {
	marked := ask(h.ada.Projects.GetProject(id, nil)).ok(t)
	if marked.MarkedForDeletionOn == nil {
		t.Error("the project is not marked for deletion")
	}
	same(t, "path of a marked project", marked.Path, fmt.Sprintf("analytical-engine-deletion_scheduled-%d", id))
	same(t, "restored path", ask(h.ada.Projects.RestoreProject(id)).done(t, http.StatusCreated).Path, "analytical-engine")
	send(h.ada.Projects.DeleteProject(id, nil)).done(t, http.StatusAccepted)
	marked = ask(h.ada.Projects.GetProject(id, nil)).ok(t)
	send(h.ada.Projects.DeleteProject(id, &gitlab.DeleteProjectOptions{PermanentlyRemove: new(true), FullPath: &marked.PathWithNamespace})).done(t, http.StatusAccepted)
}

func goProjectChange(t *testing.T, h *hosting, p *gitlab.Project) {
	ask(h.ada.Branches.CreateBranch(p.ID, &gitlab.CreateBranchOptions{Branch: new("next"), Ref: new("trunk")})).done(t, http.StatusCreated)
	changed := ask(h.ada.Projects.EditProject(p.ID, &gitlab.EditProjectOptions{
		Name: new("Difference Engine"), Description: new("subtracts"), Visibility: new(gitlab.PrivateVisibility), DefaultBranch: new("next"),
		Topics: &[]string{"iron"}, MergeMethod: new(gitlab.FastForwardMerge), SquashOption: new(gitlab.SquashOptionAlways),
		IssuesAccessLevel: new(gitlab.PrivateAccessControl), CIConfigPath: new("ci/all.yml"), BuildTimeout: new(int64(7200)), RequestAccessEnabled: new(false),
		OnlyAllowMergeIfPipelineSucceeds: new(true), LFSEnabled: new(false),
	})).done(t, http.StatusOK)
	same(t, "changed", []any{
		changed.Name, changed.PathWithNamespace, changed.Description, changed.Visibility, changed.DefaultBranch, changed.MergeMethod, changed.SquashOption,
		changed.IssuesAccessLevel, changed.CIConfigPath, changed.BuildTimeout, changed.RequestAccessEnabled, changed.OnlyAllowMergeIfPipelineSucceeds, changed.LFSEnabled,
	}, []any{
		"Difference Engine", "ada/analytical-engine", "subtracts", gitlab.PrivateVisibility, "next", gitlab.FastForwardMerge, gitlab.SquashOptionAlways,
		gitlab.PrivateAccessControl, "ci/all.yml", int64(7200), false, true, false,
	})
	same(t, "topics", changed.Topics, []string{"iron"})
	same(t, "read again", ask(h.ada.Projects.GetProject(p.ID, nil)).ok(t), changed)
	ask(h.bob.Projects.GetProject(p.ID, nil)).missing(t)
	same(t, "default branch", ask(h.ada.Branches.GetBranch(p.ID, "next")).ok(t).Default, true)
	ask(h.ada.Projects.EditProject(p.ID, &gitlab.EditProjectOptions{DefaultBranch: new("nowhere")})).
		refused(t, http.StatusBadRequest, "{message: {default_branch: [Could not set the default branch. Do you have a branch named 'nowhere' in your repository?]}}")
	ask(h.ada.Projects.EditProject(p.ID, &gitlab.EditProjectOptions{Visibility: new(gitlab.PublicVisibility)})).ok(t)
}

func goProjectPicture(t *testing.T, h *hosting, p *gitlab.Project) {
	image := picture(t, color.White)
	with := ask(h.ada.Projects.UploadAvatar(p.ID, bytes.NewReader(image), "engine.png")).done(t, http.StatusOK)
	served(t, with.AvatarURL, image)
	got, err := io.ReadAll(ask(h.ada.Projects.DownloadAvatar(p.ID)).done(t, http.StatusOK))
	if err != nil || !bytes.Equal(got, image) {
		t.Errorf("the picture comes back with %d bytes (%v), want %d", len(got), err, len(image))
	}
	without := ask(h.ada.Projects.EditProject(p.ID, &gitlab.EditProjectOptions{Avatar: &gitlab.ProjectAvatar{}})).ok(t)
	same(t, "address of no picture", without.AvatarURL, "")
	ask(h.ada.Projects.DownloadAvatar(p.ID)).missing(t)
}

func goProjectLanguages(t *testing.T, h *hosting, p *gitlab.Project) {
	h.commit(t, p, &gitlab.CreateCommitOptions{Branch: new("next"), CommitMessage: new("code"), Actions: []*gitlab.CommitActionOptions{
		{Action: new(gitlab.FileCreate), FilePath: new("a.go"), Content: new("package a\n\nvar A = 1\n")},
		{Action: new(gitlab.FileCreate), FilePath: new("b.rb"), Content: new("puts 12345678901234\n")},
	}})
	languages := *ask(h.ada.Projects.GetProjectLanguages(p.ID)).ok(t)
	if len(languages) != 2 || languages["Go"]+languages["Ruby"] < 99.9 || languages["Go"] <= languages["Ruby"] {
		t.Errorf("languages: %v", languages)
	}
}

func goProjectLists(t *testing.T, h *hosting) {
	g := h.group(t, "lists")
	add := func(path string, visibility gitlab.VisibilityValue, topics ...string) *gitlab.Project {
		return ask(h.ada.Projects.CreateProject(&gitlab.CreateProjectOptions{Path: &path, NamespaceID: &g.ID, Visibility: &visibility, Topics: &topics})).done(t, http.StatusCreated)
	}
	// The projects of a private group are private.
	ask(h.ada.Groups.UpdateGroup(g.ID, &gitlab.UpdateGroupOptions{Visibility: new(gitlab.PublicVisibility)})).ok(t)
	first := add("alpha", gitlab.PublicVisibility, "red", "blue")
	second := add("beta", gitlab.InternalVisibility, "red")
	third := add("gamma", gitlab.PrivateVisibility)
	fourth := add("alphabet", gitlab.PublicVisibility)
	ask(h.ada.Projects.ArchiveProject(fourth.ID)).done(t, http.StatusCreated)
	ask(h.bob.Projects.StarProject(second.ID)).done(t, http.StatusCreated)
	ask(h.ada.ProjectMembers.AddProjectMember(third.ID, &gitlab.AddProjectMemberOptions{UserID: h.bobUser.ID, AccessLevel: new(gitlab.DeveloperPermissions)})).done(t, http.StatusCreated)

	anonymous, err := gitlab.NewClient("", gitlab.WithBaseURL(h.s.url))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		by   *gitlab.Client
		opt  gitlab.ListProjectsOptions
		want []string
	}{
		{"by search", h.ada, gitlab.ListProjectsOptions{Search: new("alpha")}, []string{"lists/alphabet", "lists/alpha"}},
		{"not archived", h.ada, gitlab.ListProjectsOptions{Search: new("alpha"), Archived: new(false)}, []string{"lists/alpha"}},
		{"by topics", h.ada, gitlab.ListProjectsOptions{Topic: new("red,blue")}, []string{"lists/alpha"}},
		{"by one topic, in order", h.ada, gitlab.ListProjectsOptions{Topic: new("red"), OrderBy: new("name"), Sort: new("asc")}, []string{"lists/alpha", "lists/beta"}},
		{"starred", h.bob, gitlab.ListProjectsOptions{Starred: new(true)}, []string{"lists/beta"}},
		{"membership", h.bob, gitlab.ListProjectsOptions{Membership: new(true)}, []string{"lists/gamma"}},
		{"as maintainer", h.bob, gitlab.ListProjectsOptions{MinAccessLevel: new(gitlab.MaintainerPermissions)}, []string{}},
		{"as developer", h.bob, gitlab.ListProjectsOptions{MinAccessLevel: new(gitlab.DeveloperPermissions)}, []string{"lists/gamma"}},
		{"internal", h.bob, gitlab.ListProjectsOptions{Visibility: new(gitlab.InternalVisibility)}, []string{"lists/beta"}},
		{"by name of the namespace", h.bob, gitlab.ListProjectsOptions{Search: new("lists/b"), SearchNamespaces: new(true)}, []string{"lists/beta"}},
		{"for nobody", anonymous, gitlab.ListProjectsOptions{Search: new("alpha"), Archived: new(false)}, []string{"lists/alpha"}},
		{"internal, for nobody", anonymous, gitlab.ListProjectsOptions{Search: new("beta")}, []string{}},
		{"between ids", h.ada, gitlab.ListProjectsOptions{IDAfter: &first.ID, IDBefore: &fourth.ID, OrderBy: new("id"), Sort: new("asc")}, []string{"lists/beta", "lists/gamma"}},
		{"on a storage, for administrators", h.root, gitlab.ListProjectsOptions{RepositoryStorage: new("default"), Search: new("gamma")}, []string{"lists/gamma"}},
		{"on another storage", h.root, gitlab.ListProjectsOptions{RepositoryStorage: new("other")}, []string{}},
	} {
		got := ask(test.by.Projects.ListProjects(&test.opt)).ok(t)
		same(t, "projects "+test.name, mapped(got, projectPath), test.want)
	}
	simple := ask(h.ada.Projects.ListProjects(&gitlab.ListProjectsOptions{Search: new("gamma"), Simple: new(true)})).ok(t)
	if len(simple) != 1 || simple[0].ID != third.ID || simple[0].Permissions != nil || simple[0].HTTPURLToRepo == "" {
		t.Errorf("simple form: %+v", simple)
	}
	same(t, "of the group", mapped(ask(h.bob.Groups.ListGroupProjects(g.ID, &gitlab.ListGroupProjectsOptions{OrderBy: new("path"), Sort: new("asc")})).ok(t), projectPath),
		[]string{"lists/alpha", "lists/alphabet", "lists/beta", "lists/gamma"})
	same(t, "starred by", mapped(ask(h.ada.Projects.ListProjectStarrers(second.ID, nil)).ok(t), func(s *gitlab.ProjectStarrer) string { return s.User.Username }), []string{"bob"})
	same(t, "stars of", mapped(ask(h.ada.Projects.ListUserStarredProjects("bob", nil)).ok(t), projectPath), []string{"lists/beta"})
	goProjectPages(t, h, []string{"lists/alpha", "lists/beta", "lists/gamma", "lists/alphabet"})
}

// goProjectPages reads the pages of a list with keyset and offset pagination.
func goProjectPages(t *testing.T, h *hosting, want []string) {
	for _, by := range []struct {
		name string
		page gitlab.ListOptions
	}{
		{"keyset", gitlab.ListOptions{Pagination: "keyset", PerPage: 1}},
		{"number", gitlab.ListOptions{PerPage: 1}},
	} {
		pages := 0
		all := scanned(t, func(p gitlab.PaginationOptionFunc) ([]*gitlab.Project, *gitlab.Response, error) {
			pages++
			return h.ada.Projects.ListProjects(&gitlab.ListProjectsOptions{
				ListOptions: by.page, OrderBy: new("id"), Sort: new("asc"), Search: new("lists/"), SearchNamespaces: new(true),
			}, p)
		})
		same(t, "all pages by "+by.name, mapped(all, projectPath), want)
		if pages < len(want) || pages > len(want)+1 {
			t.Errorf("%d requests by %s, want one for each project", pages, by.name)
		}
	}
	page := ask(h.ada.Projects.ListProjects(&gitlab.ListProjectsOptions{
		ListOptions: gitlab.ListOptions{PerPage: 3, Page: 2}, OrderBy: new("id"), Sort: new("asc"), Search: new("lists/"), SearchNamespaces: new(true),
	}))
	same(t, "second page", mapped(page.ok(t), projectPath), want[3:])
	same(t, "numbers of the page", []int64{page.res.TotalItems, page.res.TotalPages, page.res.CurrentPage, page.res.PreviousPage, page.res.NextPage}, []int64{4, 2, 2, 1, 0})
	ask(h.ada.Projects.ListProjects(&gitlab.ListProjectsOptions{ListOptions: gitlab.ListOptions{Pagination: "keyset"}, OrderBy: new("name")})).
		refused(t, http.StatusMethodNotAllowed, "{error: Keyset pagination is not yet available for this type of request}")
}
