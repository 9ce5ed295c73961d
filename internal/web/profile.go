package web

import (
	"strings"

	"svc/internal/activity"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/user"
)

// profileView is the profile of a user.
type profileView struct {
	User     *user.User
	Whole    bool // not only the name
	Self     bool
	Ghost    bool   // whether it is the ghost user
	Tab      string // projects or activity
	Projects []*project.Project
	Events   []eventView
	Calendar *calendar
	Pager    pager
}

func (profileView) view() string    { return "user/profile" }
func (p profileView) title() string { return p.User.Name }

func (w *Web) profile(v *visit, ref user.Ref) error {
	u, err := w.Users.Find(v, v.actor, ref)
	if err != nil {
		return err
	}
	if !strings.EqualFold(u.Username, string(ref)) {
		return errs.NotFound("User")
	}
	if u.Kind == user.Ghost {
		return v.show(profileView{User: u, Ghost: true})
	}
	p := profileView{User: u, Whole: user.MayReadProfile(v.actor, u), Self: v.actor.Is(u.ID)}
	if p.Whole {
		if p.Calendar, err = w.calendar(v, u); err != nil {
			return err
		}
	}
	if p.Tab = v.param("tab"); p.Tab == "activity" && p.Whole {
		page, err := w.Activity.OfProfile(v, v.actor, u, activity.Filter{}, v.paging())
		if err != nil {
			return err
		}
		if p.Events, err = w.eventViews(v, page.Items); err != nil {
			return err
		}
		p.Pager = v.pager(page.More)
		return v.show(p)
	}
	p.Tab = "projects"
	found, err := w.Projects.UserProjects(v, v.actor, ref, project.Filter{}, orders()[""], v.paging())
	if err != nil {
		return err
	}
	p.Projects, p.Pager = found.Items, v.pager(found.More)
	return v.show(p)
}
