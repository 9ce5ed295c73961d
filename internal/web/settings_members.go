package web

import (
	"strings"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/invite"
	"svc/internal/project"
	"svc/internal/user"
)

func (w *Web) memberPages() {
	w.projectPage("GET project_members", signedIn, w.projectMembers)
	w.groupPage("GET group_members", signedIn, w.groupMembers)
	w.settingsPage("GET settings/members", w.members)
	w.settingsPage("POST settings/members", w.addMember)
	w.settingsPage("POST settings/members/{id}", w.changeMember)
	w.settingsPage("POST settings/members/{id}/delete", w.removeMember)
	w.settingsPage("POST settings/invitations/revoke", w.revokeInvitation)
	w.settingsPage("POST settings/shares", w.addShare)
	w.settingsPage("POST settings/shares/{id}/delete", w.removeShare)
	w.settingsPage("POST settings/requests/{id}/approve", w.approveRequest)
	w.settingsPage("POST settings/requests/{id}/deny", w.denyRequest)
}

type membersPage struct {
	setup
	Form     form
	Search   string
	Members  []memberRow
	Requests []*project.Member
	Shares   []project.Share
	Changes  bool // the visitor may add members and approve requests
	Invites  bool // and groups
	Pending  []*invite.Invitation
	Pager    pager
}

// memberRow is a member. A member that is inherited or comes from a share is changed
// where the membership is direct.
type memberRow struct {
	*project.Member
	Inherited bool
	Self      bool
	Change    bool // the visitor may change it
}

func (membersPage) view() string    { return "shared/settings_members" }
func (p membersPage) title() string { return "Members · " + p.Name() }

func (w *Web) members(v *visit, in project.Place) error { return w.showMembers(v, in, form{}) }

func (w *Web) showMembers(v *visit, in project.Place, f form) error {
	s, err := w.setup(v, in, "members")
	if err != nil {
		return err
	}
	f.move("user", "username")
	f.only("username", "access_level", "expires_at", "group", "group_access")
	p := membersPage{setup: s, Form: f, Search: v.param("search"), Changes: s.may.ChangeMembers, Invites: s.may.Share}
	if p.Form.Values == nil {
		p.Form.Values = filled("access_level", "30", "group_access", "30").Values
	}
	page, err := w.Projects.Members(v, v.actor, in, project.MemberFilter{All: true, Query: p.Search}, v.paging())
	if err != nil {
		return err
	}
	p.Pager = v.pager(page.More)
	if p.Members, err = w.memberRows(v, s, page.Items); err != nil {
		return err
	}
	if pending, err := w.Invites.List(v, v.actor, in, "", allOf()); err == nil {
		p.Pending = pending.Items
	} else if !errs.IsRefusal(err) {
		return err
	}
	requests, err := w.Projects.Requests(v, v.actor, in, allOf())
	if err != nil {
		return err
	}
	p.Requests = requests.Items
	if in.Group {
		p.Shares = s.G.Group.Shares
		return v.showForm(p, f)
	}
	whole, err := w.Projects.Get(v, v.actor, in.Ref) // the head is without them
	if err != nil {
		return err
	}
	p.Shares = whole.Shares
	return v.showForm(p, f)
}

// memberRows separates direct members from inherited ones.
func (w *Web) memberRows(v *visit, s setup, list []*project.Member) ([]memberRow, error) {
	if len(list) == 0 {
		return nil, nil
	}
	ids := make([]int64, len(list))
	for i, m := range list {
		ids[i] = m.UserID
	}
	direct, err := w.Projects.Members(v, v.actor, s.Place, project.MemberFilter{Users: ids}, db.Paging{Limit: len(ids)})
	if err != nil {
		return nil, err
	}
	here := map[int64]bool{}
	for _, m := range direct.Items {
		here[m.UserID] = true
	}
	rows := make([]memberRow, len(list))
	for i, m := range list {
		rows[i] = memberRow{Member: m, Inherited: !here[m.UserID], Self: v.actor.Is(m.UserID), Change: here[m.UserID] && s.may.ChangeMembers && s.may.Grants(m.Level)}
	}
	return rows, nil
}

// projectMembersPage lists the members of a project for visitors who may not change
// them.
type projectMembersPage struct {
	head
	Search  string
	Members []*project.Member
	Pager   pager
}

func (projectMembersPage) view() string    { return "project/members" }
func (p projectMembersPage) title() string { return "Members · " + p.Project.FullName() }

func (w *Web) projectMembers(v *visit, ref project.Ref) error {
	h, err := w.head(v, ref, "members")
	if err != nil {
		return err
	}
	in := project.Place{Ref: h.in()}
	if h.MaySet {
		return v.redirect(settingsOf(project.Place{Ref: project.Ref(h.Project.FullPath)}, "members"))
	}
	p := projectMembersPage{head: h, Search: v.param("search")}
	page, err := w.Projects.Members(v, v.actor, in, project.MemberFilter{All: true, Query: p.Search}, v.paging())
	if err != nil {
		return err
	}
	p.Members, p.Pager = page.Items, v.pager(page.More)
	return v.show(p)
}

// groupMembers redirects to the members of a group, which are a tab of its page for
// visitors who may not change them.
func (w *Web) groupMembers(v *visit, ref project.Ref) error {
	h, err := w.groupHead(v, ref, "members")
	if err != nil {
		return err
	}
	if h.MaySet {
		return v.redirect(settingsOf(project.Place{Ref: project.Ref(h.Group.FullPath), Group: true}, "members"))
	}
	return v.redirect(pathTo(h.Group.FullPath) + "?tab=members")
}

// findUser finds a user by the username that was typed, with or without @.
func (w *Web) findUser(v *visit, username string) (*user.User, error) {
	username = strings.TrimPrefix(username, "@")
	u, err := w.Users.Find(v, v.actor, user.Ref(username))
	if err == nil && !strings.EqualFold(u.Username, username) {
		return nil, errs.NotFound("User") // a number is not a username
	}
	return u, err
}

func (w *Web) addMember(v *visit, in project.Place) error {
	if at := strings.Index(v.text("username"), "@"); at > 0 {
		return w.inviteByEmail(v, in)
	}
	if _, err := w.setup(v, in, "members"); err != nil {
		return err
	}
	id, err := w.named(v, v.text("username"))
	if err == nil {
		_, err = w.Projects.AddMember(v, v.actor, in, project.NewMember{UserID: id, Level: v.sentLevel("access_level"), ExpiresAt: v.text("expires_at")})
	}
	if err != nil {
		f := v.sent()
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showMembers(v, in, f)
	}
	return v.done(v.text("username")+" was added.", settingsOf(in, "members"))
}

func (w *Web) changeMember(v *visit, in project.Place) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	level, until := v.sentLevel("access_level"), v.text("expires_at")
	_, err = w.Projects.UpdateMember(v, v.actor, in, id, project.MemberChange{Level: &level, ExpiresAt: &until})
	return v.redirectWithFlash(err, "The member was updated.", settingsOf(in, "members"))
}

func (w *Web) removeMember(v *visit, in project.Place) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	err = w.Projects.RemoveMember(v, v.actor, in, id, false)
	if err == nil && v.actor.Is(id) {
		return v.done(leftMessage(in), "/")
	}
	return v.redirectWithFlash(err, "The member was removed.", settingsOf(in, "members"))
}

func (w *Web) addShare(v *visit, in project.Place) error {
	f := v.sent()
	g, err := w.Projects.Group(v, v.actor, project.Ref(strings.Trim(v.text("group"), "/")))
	switch {
	case errs.Is(err, errs.KindNotFound):
		f.wrong("group", "does not exist, or you don't have access to it")
		return w.showMembers(v, in, f)
	case err != nil:
		return err
	}
	_, err = w.Projects.ShareWith(v, v.actor, in, project.NewShare{GroupID: g.ID, Level: v.sentLevel("group_access"), ExpiresAt: v.text("expires_at")})
	if err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showMembers(v, in, f)
	}
	return v.done("The group "+g.FullName+" was invited.", settingsOf(in, "members"))
}

func (w *Web) removeShare(v *visit, in project.Place) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	return v.redirectWithFlash(w.Projects.Unshare(v, v.actor, in, id), "The group no longer has access.", settingsOf(in, "members"))
}

func (w *Web) approveRequest(v *visit, in project.Place) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	_, err = w.Projects.Approve(v, v.actor, in, id, v.sentLevel("access_level"))
	return v.redirectWithFlash(err, "Access was granted.", settingsOf(in, "members"))
}

func (w *Web) denyRequest(v *visit, in project.Place) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	return v.redirectWithFlash(w.Projects.Deny(v, v.actor, in, id), "The access request was denied.", settingsOf(in, "members"))
}

func (w *Web) joinPages() {
	w.settingsPage("POST request_access", w.requestAccess)
	w.settingsPage("POST withdraw_request", w.withdrawRequest)
	w.settingsPage("POST leave", w.leave)
}

// placeAt returns the URL of a project or group.
func placeAt(in project.Place) string { return pathTo(string(in.Ref)) }

func (w *Web) requestAccess(v *visit, in project.Place) error {
	_, err := w.Projects.RequestAccess(v, v.actor, in)
	return v.redirectWithFlash(err, "Your access request was sent.", placeAt(in))
}

func (w *Web) withdrawRequest(v *visit, in project.Place) error {
	return v.redirectWithFlash(w.Projects.Deny(v, v.actor, in, v.actor.ID), "Your access request was withdrawn.", placeAt(in))
}

func (w *Web) leave(v *visit, in project.Place) error {
	return v.redirectWithFlash(w.Projects.RemoveMember(v, v.actor, in, v.actor.ID, false), leftMessage(in), "/")
}

func leftMessage(in project.Place) string {
	if in.Group {
		return "You left the group."
	}
	return "You left the project."
}
