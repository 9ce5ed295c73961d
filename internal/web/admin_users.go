package web

import (
	"slices"
	"strconv"

	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/signin"
	"svc/internal/user"
)

const usersAt = "/admin/users"

func (w *Web) adminUserPages() {
	w.page("GET /admin/users", admins, w.adminUsers)
	w.page("GET /admin/users/new", admins, w.adminNewUser)
	w.page("POST /admin/users", admins, w.adminCreateUser)
	w.page("GET /admin/users/{id}", admins, w.adminUser)
	w.page("POST /admin/users/{id}", admins, w.adminSaveUser)
	for name, act := range w.userActions() {
		w.page("POST /admin/users/{id}/"+name, admins, w.adminAct(act))
	}
	w.page("POST /admin/users/{id}/identities", admins, w.adminLinkIdentity)
	w.page("POST /admin/users/{id}/identities/unlink", admins, w.adminUnlinkIdentity)
	w.page("POST /admin/users/{id}/delete", admins, w.adminDeleteUser)
	w.page("POST /admin/users/{id}/impersonate", admins, w.impersonate)
	// An impersonated user is seldom an administrator.
	w.page("POST /admin/impersonation/stop", unfinished, w.stopImpersonating)
}

type usersPage struct {
	Search  string
	Filter  string
	Filters []option
	Users   []*user.User
	Pager   pager
}

func (usersPage) view() string  { return "admin/users" }
func (usersPage) title() string { return "Users · Admin area" }

// userFilters are the lists of users, by their names in the query.
func userFilters() []option {
	return []option{
		{"", "All"}, {"active", "Active"}, {"admins", "Administrators"}, {"pending", "Pending approval"}, {"blocked", "Blocked"}, {"banned", "Banned"},
		{"deactivated", "Deactivated"}, {"external", "External"}, {"two_factor", "Two-factor enabled"}, {"without_two_factor", "Two-factor disabled"},
		{"without_projects", "Without projects"}, {"bots", "Bots"},
	}
}

func userFilter(name string) user.Filter {
	f := user.Filter{Humans: true}
	switch name {
	case "active":
		f.Active = true
	case "admins":
		f.Admin.Admins = true
	case "pending":
		f.Admin.State = user.PendingApproval
	case "blocked":
		f.Blocked = true
	case "banned":
		f.Admin.State = user.Banned
	case "deactivated":
		f.Admin.State = user.Deactivated
	case "external":
		f.External = true
	case "two_factor":
		f.Admin.TwoFactor = "enabled"
	case "without_two_factor":
		f.Admin.TwoFactor = "disabled"
	case "without_projects":
		f.Admin.WithoutProjects = true
	case "bots":
		f.Humans, f.ExcludeHumans = false, true
	}
	return f
}

func (w *Web) adminUsers(v *visit) error {
	p := usersPage{Search: v.param("search"), Filter: v.param("filter"), Filters: userFilters()}
	f := userFilter(p.Filter)
	f.Search = p.Search
	page, err := w.Users.List(v, v.actor, f, user.Sort{By: "id", Desc: true}, v.paging())
	if err != nil {
		return err
	}
	p.Users, p.Pager = page.Items, v.pager(page.More)
	return v.show(p)
}

type newUserPage struct{ Form form }

func (newUserPage) view() string  { return "admin/new_user" }
func (newUserPage) title() string { return "New user · Admin area" }

func (w *Web) adminNewUser(v *visit) error { return v.show(newUserPage{filled()}) }

func (w *Web) adminCreateUser(v *visit) error {
	admin, external := v.ticked("admin"), v.ticked("external")
	n := user.NewUser{
		Name: v.text("name"), Username: v.text("username"), Email: v.text("email"), Password: v.r.PostForm.Get("password"),
		SkipConfirmation: true, Fields: user.Fields{Admin: &admin, External: &external},
	}
	n.ResetPassword = n.Password == ""
	u, err := w.Users.Create(v, v.actor, n)
	if err != nil {
		f := v.sent()
		if err := f.refused(err); err != nil {
			return err
		}
		f.only("name", "username", "email", "password")
		return v.again(newUserPage{f})
	}
	return v.done(u.Name+" was created.", userAt(u.ID))
}

func userAt(id int64) string { return usersAt + "/" + strconv.FormatInt(id, 10) }

type userPage struct {
	User        *user.User
	Form        form
	Self        bool
	Locked      bool
	Memberships []project.Membership
	Links       []signin.Link
	Impersonate bool
}

func (userPage) view() string    { return "admin/user" }
func (p userPage) title() string { return p.User.Name + " · Admin area" }

// Unlinked are the identity providers at which the user has no identity.
func (p userPage) Unlinked() []option {
	var list []option
	for _, l := range p.Links {
		if l.ExternUID == "" {
			list = append(list, option{l.Name, l.Label})
		}
	}
	return list
}

// State is the state of the account.
func (p userPage) State() string { return string(p.User.State) }

func (w *Web) adminUser(v *visit) error {
	u, err := w.chosenUser(v)
	if err != nil {
		return err
	}
	return w.showUser(v, u, filled("name", u.Name, "username", u.Username, "note", u.Note, "projects_limit", strconv.FormatInt(u.ProjectsLimit, 10),
		"admin", on(u.Admin), "external", on(u.External), "can_create_group", on(u.CanCreateGroup)))
}

func (w *Web) chosenUser(v *visit) (*user.User, error) {
	id, err := v.number("id")
	if err != nil {
		return nil, err
	}
	return w.Users.Get(v, v.actor, id, false)
}

func (w *Web) showUser(v *visit, u *user.User, f form) error {
	settings, err := w.Settings.Current(v)
	if err != nil {
		return err
	}
	self := v.actor.Is(u.ID)
	p := userPage{User: u, Form: f, Self: self, Locked: u.Locked(w.Now()),
		Impersonate: settings.ImpersonationEnabled && !self && u.Kind == user.Human && u.State == user.Active && v.actor.Impersonator == nil}
	page, err := w.Projects.Memberships(v, v.actor, u.ID, "", allOf())
	if err != nil {
		return err
	}
	p.Memberships = page.Items
	if p.Links, err = w.SignIn.UserLinks(v, v.actor, u.ID); err != nil {
		return err
	}
	return v.showForm(p, f)
}

func (w *Web) adminSaveUser(v *visit) error {
	u, err := w.chosenUser(v)
	if err != nil {
		return err
	}
	f := v.sent()
	limit := v.whole(&f, "projects_limit")
	if f.bad() {
		return w.showUser(v, u, f)
	}
	name, username, note := v.text("name"), v.text("username"), v.text("note")
	admin, external, groups := v.ticked("admin"), v.ticked("external"), v.ticked("can_create_group")
	c := user.Change{Name: &name, Fields: user.Fields{Note: &note, Admin: &admin, External: &external, CanCreateGroup: &groups, ProjectsLimit: &limit}}
	if username != u.Username {
		c.Username = &username
	}
	if password := v.r.PostForm.Get("password"); password != "" {
		c.Password = &password
	}
	_, err = w.Users.Update(v, v.actor, u.ID, c)
	if errs.Is(err, errs.KindNotFound) && c.Username != nil {
		err = errs.InvalidField("username", "has already been taken") // the API answers "not found" here
	}
	if err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
		f.only("name", "username", "password", "note", "projects_limit")
		return w.showUser(v, u, f)
	}
	return v.done("The user was saved.", userAt(u.ID))
}

// userAction is an action of administrators on an account.
type userAction struct {
	do   func(v *visit, id int64) error
	done string
	gone bool // the action deletes the account
}

func (w *Web) userActions() map[string]userAction {
	return map[string]userAction{
		"block":      {func(v *visit, id int64) error { _, err := w.Users.Block(v, v.actor, id); return err }, "The user was blocked.", false},
		"unblock":    {func(v *visit, id int64) error { return w.Users.Unblock(v, v.actor, id) }, "The user was unblocked.", false},
		"ban":        {func(v *visit, id int64) error { return w.Users.Ban(v, v.actor, id) }, "The user was banned.", false},
		"unban":      {func(v *visit, id int64) error { return w.Users.Unban(v, v.actor, id) }, "The user was unbanned.", false},
		"deactivate": {func(v *visit, id int64) error { return w.Users.Deactivate(v, v.actor, id) }, "The user was deactivated.", false},
		"activate":   {func(v *visit, id int64) error { return w.Users.Activate(v, v.actor, id) }, "The user was activated.", false},
		"approve":    {func(v *visit, id int64) error { return w.Users.Approve(v, v.actor, id) }, "The user was approved.", false},
		"reject":     {func(v *visit, id int64) error { return w.Users.Reject(v, v.actor, id) }, "The user was rejected and deleted.", true},
		"unlock":     {func(v *visit, id int64) error { return w.Users.Unlock(v, v.actor, id) }, "The user was unlocked.", false},
		"confirm":    {func(v *visit, id int64) error { return w.Users.Confirm(v, v.actor, id) }, "The email address was confirmed.", false},
		"two_factor": {func(v *visit, id int64) error { return w.Users.DisableTwoFactor(v, v.actor, id) }, "Two-factor authentication was disabled.", false},
	}
}

func (w *Web) adminAct(a userAction) func(*visit) error {
	return func(v *visit) error {
		id, err := v.number("id")
		if err != nil {
			return err
		}
		err = a.do(v, id)
		if err == nil && a.gone {
			return v.done(a.done, usersAt)
		}
		return v.redirectWithFlash(err, a.done, userAt(id))
	}
}

// adminLinkIdentity links the account to an identity at a provider.
func (w *Web) adminLinkIdentity(v *visit) error {
	u, err := w.chosenUser(v)
	if err != nil {
		return err
	}
	provider, externUID := v.text("provider"), v.text("extern_uid")
	links, err := w.SignIn.UserLinks(v, v.actor, u.ID)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(links, func(l signin.Link) bool { return l.Name == provider && l.ExternUID == "" }) || externUID == "" {
		v.setFlash("bad", "Select a provider that is not linked, and enter the ID of the user there.")
		return v.redirect(userAt(u.ID))
	}
	_, err = w.Users.Update(v, v.actor, u.ID, user.Change{Fields: user.Fields{Provider: provider, ExternUID: externUID}})
	return v.redirectWithFlash(err, "The account was linked.", userAt(u.ID))
}

func (w *Web) adminUnlinkIdentity(v *visit) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	err = w.SignIn.DeleteIdentity(v, v.actor, id, v.r.PostForm.Get("provider"))
	return v.redirectWithFlash(err, "The account was unlinked.", userAt(id))
}

// adminDeleteUser deletes an account after its username was typed. Its
// contributions are moved to the ghost user, or deleted if "hard" is set.
func (w *Web) adminDeleteUser(v *visit) error {
	u, err := w.chosenUser(v)
	if err != nil {
		return err
	}
	if v.text("confirm") != u.Username {
		v.setFlash("bad", "Type the username to delete the user.")
		return v.redirect(userAt(u.ID))
	}
	err = w.Users.Delete(v, v.actor, u.ID, v.ticked("hard"), nil)
	if err != nil {
		return v.redirectWithFlash(err, "", userAt(u.ID))
	}
	return v.done(u.Name+" was deleted.", usersAt)
}

func (w *Web) impersonate(v *visit) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	u, err := w.Users.Impersonate(v, v.actor, v.session, id)
	if err != nil {
		return v.redirectWithFlash(err, "", userAt(id))
	}
	return v.done("You are now impersonating "+u.Name+". Your actions are recorded with your name.", "/")
}

func (w *Web) stopImpersonating(v *visit) error {
	u, err := w.Users.StopImpersonating(v, v.actor, v.session)
	if err != nil {
		return err
	}
	return v.done("Impersonation stopped.", userAt(u.ID))
}
