package web

import (
	"html/template"
	"strings"

	"svc/internal/user"
)

// sideBar is the navigation beside a page: the pages of a project, of a group, of
// the user settings or of the Admin area. It lists the pages that the visitor may
// see.
type sideBar struct {
	label  string // for screen readers
	name   string // of the project or group
	home   string // URL of its first page
	face   *portrait
	base   string // path prefix of its pages
	groups []navGroup
	search searchPlace // what the search box searches
}

// navGroup is a group of items. One with a label can be collapsed.
type navGroup struct {
	key, label, icon string
	open             bool // unless the user collapsed it
	items            []navItem
}

type navItem struct {
	label, icon, to, count string
	pages                  []string // prefixes of the paths of its pages, relative to the base
}

// group starts a group that can be collapsed.
func (b *sideBar) group(key, label, icon string, open bool) {
	b.groups = append(b.groups, navGroup{key: key, label: label, icon: icon, open: open})
}

// add adds a page to the current group if the visitor may see it. page is its path
// relative to the base; also are the paths of pages that belong to it.
func (b *sideBar) add(sees bool, label, page string, also ...string) {
	b.counted(sees, label, "", page, also...)
}

// counted adds a page with the number of its open objects.
func (b *sideBar) counted(sees bool, label, count, page string, also ...string) {
	if !sees {
		return
	}
	if count == "0" {
		count = ""
	}
	in := &b.groups[len(b.groups)-1]
	in.items = append(in.items, navItem{label: label, count: count, to: b.base + page, pages: append(also, page)})
}

// outside adds a link to another site, if there is one.
func (b *sideBar) outside(address, label string) {
	if address == "" {
		return
	}
	in := &b.groups[len(b.groups)-1]
	in.items = append(in.items, navItem{label: label, to: address})
}

// flat adds a page with its own icon.
func (b *sideBar) flat(label, icon, page string) {
	b.add(true, label, page)
	items := b.groups[len(b.groups)-1].items
	items[len(items)-1].icon = icon
}

// sideBar lists the pages of a project.
func (h head) sideBar() *sideBar {
	picture := projectFace(h.Project)
	home := pathTo(h.Project.FullPath)
	b := &sideBar{label: "Project navigation", name: h.Project.Name, home: home, face: &picture, base: home + "/-/"}
	b.search = searchPlace{Param: "project_id", ID: h.Project.ID, Name: h.Project.Name}
	planned, code := h.Issues || h.Merges, h.Code && h.Project.DefaultBranch != ""
	branch := pathTo(h.Project.DefaultBranch)

	b.group("manage", "Manage", "users", false)
	b.add(true, "Activity", "activity")
	b.add(h.MaySet, "Members", "settings/members")
	b.add(h.SignedIn && !h.MaySet, "Members", "project_members")
	b.add(planned, "Labels", "labels")

	b.group("plan", "Plan", "goal", true)
	b.counted(h.Issues, "Issues", h.Open, "issues")
	b.add(h.Issues, "Issue boards", "boards")
	b.add(planned, "Milestones", "milestones")
	b.add(h.Wiki, "Wiki", "wikis")
	b.outside(h.WikiURL, "External wiki")

	b.group("code", "Code", "braces", true)
	b.counted(h.Merges, "Merge requests", h.Pending, "merge_requests")
	b.add(code, "Repository", "tree"+branch, "tree", "blob", "blame", "edit", "new", "delete", "find_file", "edit_files", "upload", "new_dir", "forks")
	b.add(code, "Branches", "branches")
	b.add(code, "Commits", "commits"+branch, "commits", "commit")
	b.add(code, "Tags", "tags")
	b.add(code, "Compare revisions", "compare")
	b.add(h.Snippets, "Snippets", "snippets")
	b.add(code && h.Project.Settings.LFSEnabled, "Locked files", "path_locks")

	b.group("build", "Build", "flow", true)
	b.add(h.Builds, "Pipelines", "pipelines")
	b.add(h.Builds, "Jobs", "jobs")
	b.add(h.Builds && h.Code, "Pipeline editor", "ci/editor")
	b.add(h.Builds, "CI Lint", "ci/lint")
	b.add(h.Builds, "Pipeline schedules", "pipeline_schedules")

	b.group("deploy", "Deploy", "rocket", false)
	b.add(h.Releases, "Releases", "releases")
	b.add(h.Builds, "Environments", "environments")
	b.add(h.Packages, "Package registry", "packages")
	b.add(h.Flags, "Feature flags", "feature_flags", "feature_flags_user_lists")
	b.add(h.MaySet, "Pages", "pages")

	b.group("operate", "Operate", "disk", false)
	b.add(h.Terraform, "Terraform states", "terraform")

	b.group("monitor", "Monitor", "gauge", false)
	b.add(h.SeesErrors, "Error tracking", "error_tracking")
	b.add(h.SeesAlerts, "Alerts", "alert_management")

	b.group("analyze", "Analyze", "chart", false)
	b.add(code, "Contributors", "graphs")
	b.add(h.Builds, "CI/CD analytics", "pipelines/charts")

	b.group("settings", "Settings", "settings", false)
	b.add(h.MaySet, "General", "settings/general")
	b.add(h.MaySet, "Merge requests", "settings/merge_requests")
	b.add(h.MaySet, "Badges", "settings/badges")
	b.add(h.MaySet, "Integrations", "settings/integrations")
	b.add(h.MaySet, "Webhooks", "settings/hooks")
	b.add(h.MaySet, "Access tokens", "settings/access_tokens")
	b.add(h.MaySet, "Deploy tokens", "settings/deploy_tokens")
	b.add(h.MaySet, "Deploy keys", "settings/deploy_keys")
	b.add(h.MaySet, "Mirrors", "settings/mirrors")
	b.add(h.MaySet, "Protected branches and tags", "settings/protected")
	b.add(h.MaySet, "Push rules", "settings/push_rules")
	b.add(h.MaySet, "CI/CD", "settings/ci_cd")
	b.add(h.MaySet, "Protected environments", "settings/environments")
	b.add(h.MaySet, "Variables", "settings/variables")
	b.add(h.MaySet, "Secure files", "settings/secure_files")
	b.add(h.MaySet, "Runners", "settings/runners")
	b.add(h.MaySet, "Packages and registries", "settings/packages_and_registries")
	b.add(h.MaySet, "Alerts", "settings/alerts")
	b.add(h.MaySet, "Error tracking", "settings/error_tracking")
	b.add(h.MaySet, "Export", "settings/export")
	b.add(h.MaySet, "Advanced", "settings/danger")
	return b
}

// sideBar lists the pages of a group.
func (h groupHead) sideBar() *sideBar {
	picture := groupFace(h.Group)
	home := pathTo(h.Group.FullPath)
	b := &sideBar{label: "Group navigation", name: h.Group.Name, home: home, face: &picture, base: "/groups" + home + "/-/"}
	b.search = searchPlace{Param: "group_id", ID: h.Group.ID, Name: h.Group.Name}
	b.group("manage", "Manage", "users", true)
	b.add(true, "Activity", "activity")
	if h.MaySet {
		b.add(true, "Members", "settings/members", "?tab=members")
	} else if h.SignedIn {
		in := &b.groups[0]
		in.items = append(in.items, navItem{label: "Members", to: home + "?tab=members", pages: []string{"?tab=members"}})
	}
	b.add(true, "Labels", "labels")

	b.group("plan", "Plan", "goal", true)
	b.add(true, "Issues", "issues")
	b.add(true, "Issue boards", "boards")
	b.add(true, "Milestones", "milestones")
	b.add(h.Wiki, "Wiki", "wikis")

	b.group("code", "Code", "braces", true)
	b.add(true, "Merge requests", "merge_requests")

	b.group("deploy", "Deploy", "rocket", false)
	b.add(true, "Package registry", "packages")

	b.group("settings", "Settings", "settings", false)
	b.add(h.MaySet, "General", "settings/general")
	b.add(h.MaySet, "Merge requests", "settings/merge_requests")
	b.add(h.MaySet, "Badges", "settings/badges")
	b.add(h.MaySet, "Integrations", "settings/integrations")
	b.add(h.MaySet, "Webhooks", "settings/hooks")
	b.add(h.MaySet, "Access tokens", "settings/access_tokens")
	b.add(h.MaySet, "Service accounts", "settings/service_accounts")
	b.add(h.MaySet, "Deploy tokens", "settings/deploy_tokens")
	b.add(h.MaySet, "Protected branches", "settings/protected")
	b.add(h.MaySet, "Push rules", "settings/push_rules")
	b.add(h.MaySet, "Protected environments", "settings/environments")
	b.add(h.MaySet, "Variables", "settings/variables")
	b.add(h.MaySet, "Runners", "settings/runners")
	b.add(h.MaySet, "Packages and registries", "settings/packages_and_registries")
	b.add(h.MaySet, "Export", "settings/export")
	b.add(h.MaySet, "Advanced", "settings/danger")
	return b
}

// userSideBar lists the user settings.
func userSideBar(u *user.User) *sideBar {
	picture := userFace(u)
	b := &sideBar{label: "User settings", name: "User settings", home: "/-/user_settings/profile", face: &picture, base: "/-/user_settings/"}
	b.group("", "", "", true)
	b.flat("Profile", "user", "profile")
	b.flat("Preferences", "settings", "preferences")
	b.flat("Status", "smile", "status")
	b.flat("Emails", "mail", "emails")
	b.flat("Notifications", "bell", "notifications")
	b.flat("Password", "lock", "password/edit")
	b.flat("Two-factor authentication", "shield", "two_factor")
	b.flat("Linked accounts", "link", "identities")
	b.flat("Active sessions", "screen", "active_sessions")
	b.flat("SSH keys", "key", "ssh_keys")
	b.flat("GPG keys", "shield", "gpg_keys")
	b.flat("Access tokens", "token", "personal_access_tokens")
	b.flat("Applications", "app", "applications")
	return b
}

// adminSideBar lists the Admin area.
func adminSideBar() *sideBar {
	b := &sideBar{label: "Admin area", name: "Admin area", home: "/admin", base: "/admin/"}
	b.group("a-overview", "Overview", "gauge", true)
	b.groups[0].items = []navItem{{label: "Dashboard", to: "/admin", pages: []string{""}}}
	b.add(true, "Setup", "setup")
	b.add(true, "Projects", "projects")
	b.add(true, "Users", "users")
	b.add(true, "Service accounts", "service_accounts")
	b.add(true, "Groups", "groups")
	b.add(true, "Pending deletion", "pending_deletion")

	b.group("a-ci", "CI/CD", "flow", true)
	b.add(true, "Runners", "runners")
	b.add(true, "Variables", "variables")

	b.group("a-monitoring", "Monitoring", "chart", true)
	b.add(true, "Audit events", "audit_logs")
	b.add(true, "Background jobs", "background_jobs")
	b.add(true, "Nodes", "nodes")
	b.add(true, "Repository storage", "storages")

	b.group("", "", "", true)
	b.flat("System hooks", "bell", "hooks")
	b.flat("Messages", "bell", "broadcast_messages")
	b.flat("Applications", "app", "applications")
	b.flat("Pages domains", "globe", "pages_domains")
	b.flat("Settings", "settings", "application_settings")
	return b
}

// sideBar returns the sidebar of the page as HTML; empty for a page without one.
func (v *visit) sideBar() template.HTML {
	path, in := v.r.URL.Path, v.inside
	switch {
	case v.session == nil && in == nil, v.session != nil && v.session.User.MustChangePassword && v.session.Impersonator == nil:
		return ""
	case in != nil:
	case strings.HasPrefix(path, "/-/user_settings"):
		in = userSideBar(v.session.User)
	case (path == "/admin" || strings.HasPrefix(path, "/admin/")) && v.actor.Admin:
		in = adminSideBar()
	default:
		return ""
	}
	return in.html(v.web, in.path(v), v.cookie("nav"))
}

// path returns the path of the page. The members of a group are a tab of its first
// page.
func (b *sideBar) path(v *visit) string {
	if tab := v.param("tab"); tab != "" && v.r.URL.Path == b.home {
		return b.base + "?tab=" + tab
	}
	return v.r.URL.Path
}

// section returns the item of the page; nil if there is none.
func (b *sideBar) section(v *visit) *crumb {
	group, item := b.current(b.path(v))
	if group < 0 {
		return nil
	}
	it := b.groups[group].items[item]
	return &crumb{it.label, it.to}
}

// current finds the item of a page: the one with the longest path that is a prefix
// of the path of the page.
func (b *sideBar) current(path string) (group, item int) {
	group, item = -1, -1
	page, ok := strings.CutPrefix(path, b.base)
	if !ok {
		page, ok = strings.CutPrefix(path+"/", b.base)
	}
	if !ok {
		return group, item
	}
	longest := -1
	for g := range b.groups {
		for i, it := range b.groups[g].items {
			for _, p := range it.pages {
				if len(p) > longest && (page == p || p != "" && strings.HasPrefix(page, p+"/")) {
					group, item, longest = g, i, len(p)
				}
			}
		}
	}
	return group, item
}

// html draws the sidebar. Every page has it with many links, so it does not use a
// template. The groups that the user has opened or closed are stored in a cookie:
// "manage1.code0".
func (b *sideBar) html(w *Web, path, chosen string) template.HTML {
	group, item := b.current(path)
	var out strings.Builder
	out.Grow(8 << 10)
	put := func(parts ...string) {
		for _, p := range parts {
			out.WriteString(p)
		}
	}
	text := template.HTMLEscapeString
	put(`<nav class="nav" id="nav" popover aria-label="`, b.label, `">`)
	put(`<a class="place" href="`, b.home, `"`)
	if path == b.home && item < 0 {
		put(` aria-current="page"`)
	}
	put(`>`)
	if b.face != nil {
		put(string(drawFace(faceSize("tiny", *b.face))))
	} else {
		put(string(w.icon("gauge")))
	}
	put(`<span>`, text(b.name), "</span></a>\n")
	for g, in := range b.groups {
		if len(in.items) == 0 {
			continue
		}
		if in.label != "" {
			open := in.open
			switch {
			case strings.Contains("."+chosen+".", "."+in.key+"1."):
				open = true
			case strings.Contains("."+chosen+".", "."+in.key+"0."):
				open = false
			}
			put(`<details data-nav="`, in.key, `"`)
			if open || g == group {
				put(" open")
			}
			put(`><summary>`, string(w.icon(in.icon)), in.label, `</summary>`)
		}
		put("<ul>")
		for i, it := range in.items {
			put(`<li><a href="`, text(it.to), `"`)
			if g == group && i == item {
				put(` aria-current="page"`)
			}
			put(">")
			if it.icon != "" {
				put(string(w.icon(it.icon)))
			}
			put(it.label)
			if it.count != "" {
				put(` <span class="count">`, it.count, `</span>`)
			}
			put("</a>\n")
		}
		put("</ul>")
		if in.label != "" {
			put("</details>")
		}
	}
	put("</nav>")
	return template.HTML(out.String())
}
