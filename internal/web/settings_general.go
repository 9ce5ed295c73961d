package web

import (
	"errors"
	"net/http"
	"strings"

	"svc/internal/errs"
	"svc/internal/patch"
	"svc/internal/picture"
	"svc/internal/project"
	"svc/internal/repo"
)

func (w *Web) generalPages() {
	w.settingsPage("GET settings/general", w.general)
	w.settingsPage("POST settings/general", w.saveGeneral)
	w.settingsPage("POST settings/avatar", w.savePlaceAvatar)
	w.settingsPage("POST settings/avatar/delete", w.removePlaceAvatar)
}

type generalPage struct {
	setup
	Form     form
	Branches []option
	Access   []option // values of the parts of a project
	Sites    []option // values of Pages
	Creators []option // roles that can create projects in a group
	Nesters  []option // roles that can create subgroups
}

func (generalPage) view() string    { return "shared/settings_general" }
func (p generalPage) title() string { return "General · " + p.Name() }

func (w *Web) general(v *visit, in project.Place) error {
	s, err := w.setup(v, in, "general")
	if err != nil {
		return err
	}
	if in.Group {
		g := s.G.Group
		return w.showGeneral(v, s, filled("name", g.Name, "description", g.Description, "visibility", string(g.Visibility),
			"project_creation_level", g.Settings.ProjectCreationLevel, "subgroup_creation_level", g.Settings.SubgroupCreationLevel,
			"request_access_enabled", on(g.Settings.RequestAccessEnabled), "share_with_group_lock", on(g.Settings.ShareWithGroupLock),
			"membership_lock", on(g.Settings.MembershipLock)))
	}
	p := s.P.Project
	return w.showGeneral(v, s, filled("name", p.Name, "description", p.Description, "topics", strings.Join(p.Topics, ", "),
		"visibility", string(p.Visibility), "default_branch", p.DefaultBranch, "repository_access_level", string(p.Repository),
		"builds_access_level", string(p.Builds), "forking_access_level", string(p.Settings.Forking),
		"issues_access_level", string(p.Issues), "merge_requests_access_level", string(p.MergeRequests), "wiki_access_level", string(p.Settings.Wiki),
		"snippets_access_level", string(p.Settings.Snippets), "pages_access_level", string(p.Settings.Pages),
		"environments_access_level", string(p.Settings.Environments), "monitor_access_level", string(p.Settings.Monitor),
		"releases_access_level", string(p.Settings.Releases), "package_registry_access_level", string(p.Settings.PackageRegistry), "analytics_access_level", string(p.Settings.Analytics),
		"request_access_enabled", on(p.Settings.RequestAccessEnabled), "lfs_enabled", on(p.Settings.LFSEnabled),
		"public_media", on(!p.Settings.EnforceAuthChecksOnUploads), "issue_branch_template", p.Settings.IssueBranchTemplate))
}

// Features are the parts of a project that have an access level of their own.
func (generalPage) Features() []option {
	return []option{
		{"issues_access_level", "Issues"}, {"repository_access_level", "Repository"}, {"merge_requests_access_level", "Merge requests"},
		{"forking_access_level", "Forks"}, {"builds_access_level", "CI/CD"}, {"wiki_access_level", "Wiki"}, {"snippets_access_level", "Snippets"},
		{"environments_access_level", "Environments"}, {"monitor_access_level", "Monitor"},
		{"releases_access_level", "Releases"}, {"analytics_access_level", "Analytics"},
	}
}

func (w *Web) showGeneral(v *visit, s setup, f form) error {
	f.move("visibility_level", "visibility")
	f.only("name", "description", "topics", "visibility", "default_branch", "repository_access_level", "builds_access_level",
		"forking_access_level", "issues_access_level", "merge_requests_access_level", "wiki_access_level", "snippets_access_level", "pages_access_level",
		"environments_access_level", "monitor_access_level", "releases_access_level", "package_registry_access_level", "analytics_access_level", "project_creation_level", "subgroup_creation_level", "issue_branch_template")
	p := generalPage{setup: s, Form: f,
		Access: []option{{"enabled", "Everyone with access"}, {"private", "Only project members"}, {"disabled", "No one"}},
		Sites:  []option{{"public", "Everyone"}, {"enabled", "Everyone with access"}, {"private", "Only project members"}, {"disabled", "No one"}},
		Creators: []option{{"developer", "Developers and above"}, {"maintainer", "Maintainers and above"}, {"owner", "Owners"},
			{"administrator", "Administrators"}, {"noone", "No one"}},
		Nesters: []option{{"maintainer", "Maintainers and above"}, {"owner", "Owners"}},
	}
	if s.P != nil && s.P.Project.DefaultBranch != "" {
		var err error
		if p.Branches, err = w.defaultNames(v, s); err != nil {
			return err
		}
	}
	return v.showForm(p, f)
}

// defaultNames returns the branches that can become the default, the current
// one first.
func (w *Web) defaultNames(v *visit, s setup) ([]option, error) {
	now := s.P.Project.DefaultBranch
	list := []option{{now, now}}
	_, page, err := w.Repos.Branches(v, v.actor, s.Place.Ref, repo.RefFilter{}, allOf())
	if errs.Is(err, errs.KindForbidden) || errs.Is(err, errs.KindNotFound) {
		return list, nil // the repository is disabled
	}
	for _, b := range page.Items {
		if b.Name != now {
			list = append(list, option{b.Name, b.Name})
		}
	}
	return list, err
}

func (w *Web) saveGeneral(v *visit, in project.Place) error {
	s, err := w.setup(v, in, "general")
	if err != nil {
		return err
	}
	name, description, visibility := v.text("name"), v.text("description"), project.Visibility(v.text("visibility"))
	if in.Group {
		_, err = w.Projects.UpdateGroup(v, v.actor, in.Ref, project.GroupChange{
			Name: &name, Description: &description, Visibility: &visibility,
			Settings: func(g *project.GroupSettings) {
				g.ProjectCreationLevel, g.SubgroupCreationLevel = v.text("project_creation_level"), v.text("subgroup_creation_level")
				g.RequestAccessEnabled, g.ShareWithGroupLock = v.ticked("request_access_enabled"), v.ticked("share_with_group_lock")
				g.MembershipLock = v.ticked("membership_lock")
			},
		})
	} else {
		err = w.saveProjectGeneral(v, s, name, description, visibility)
	}
	if err != nil {
		f := v.sent()
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showGeneral(v, s, f)
	}
	return v.done("The settings were saved.", settingsOf(in, "general"))
}

func (w *Web) saveProjectGeneral(v *visit, s setup, name, description string, visibility project.Visibility) error {
	topics := strings.FieldsFunc(v.text("topics"), func(r rune) bool { return r == ',' })
	feature := func(name string) *project.Feature { // nil if the form has no such field
		text := project.Feature(v.text(name))
		if text == "" {
			return nil
		}
		return &text
	}
	c := project.Change{Fields: project.Fields{
		Description: &description, Topics: &topics, Repository: feature("repository_access_level"), Builds: feature("builds_access_level"),
		Issues: feature("issues_access_level"), MergeRequests: feature("merge_requests_access_level"),
		Settings: func(set *project.Settings) {
			set.RequestAccessEnabled, set.LFSEnabled = v.ticked("request_access_enabled"), v.ticked("lfs_enabled")
			set.EnforceAuthChecksOnUploads = !v.ticked("public_media") // a missing box counts as unchecked
			patch.Set(&set.Forking, feature("forking_access_level"))
			patch.Set(&set.Wiki, feature("wiki_access_level"))
			patch.Set(&set.Snippets, feature("snippets_access_level"))
			patch.Set(&set.Pages, feature("pages_access_level"))
			patch.Set(&set.Environments, feature("environments_access_level"))
			patch.Set(&set.Monitor, feature("monitor_access_level"))
			patch.Set(&set.PackageRegistry, feature("package_registry_access_level"))
			patch.Set(&set.Releases, feature("releases_access_level"))
			patch.Set(&set.Analytics, feature("analytics_access_level"))
			if v.r.PostForm.Has("issue_branch_template") {
				set.IssueBranchTemplate = v.text("issue_branch_template")
			}
		},
	}}
	if s.Owner { // the form has these fields only for Owners
		c.Name, c.Visibility = &name, &visibility
	}
	c.Narrow = true // merge requests follow a repository whose access is restricted
	if branch := v.text("default_branch"); branch != "" {
		c.DefaultBranch = &branch
	}
	_, err := w.Projects.Update(v, v.actor, s.Place.Ref, c)
	return err
}

func (w *Web) savePlaceAvatar(v *visit, in project.Place) error {
	at := settingsOf(in, "general")
	file, head, err := v.r.FormFile("avatar")
	if errors.Is(err, http.ErrMissingFile) || errors.Is(err, http.ErrNotMultipart) {
		v.setFlash("bad", "Select an image first.")
		return v.redirect(at)
	}
	if err != nil {
		return errs.Invalid("The image cannot be read.").Because(err)
	}
	defer file.Close()
	return v.redirectWithFlash(w.setPlaceAvatar(v, in, &picture.File{Name: head.Filename, Data: file}), "The avatar was updated.", at)
}

func (w *Web) removePlaceAvatar(v *visit, in project.Place) error {
	return v.redirectWithFlash(w.setPlaceAvatar(v, in, nil), "The avatar was removed.", settingsOf(in, "general"))
}

// setPlaceAvatar sets or removes the avatar of a project or group.
func (w *Web) setPlaceAvatar(v *visit, in project.Place, f *picture.File) error {
	if in.Group {
		_, err := w.Projects.UpdateGroup(v, v.actor, in.Ref, project.GroupChange{Avatar: f, RemoveAvatar: f == nil})
		return err
	}
	_, err := w.Projects.Update(v, v.actor, in.Ref, project.Change{Fields: project.Fields{Avatar: f, RemoveAvatar: f == nil}})
	return err
}
