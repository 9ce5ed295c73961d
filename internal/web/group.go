package web

import (
	"html/template"
	"strings"

	"svc/internal/notify"
	"svc/internal/project"
)

// groupHead has the common data of the pages of a group.
type groupHead struct {
	Group    *project.Namespace
	Parents  []crumb
	Section  *crumb // the item of the sidebar that the page belongs to, if any
	Tab      string // projects, members or settings
	MayAdd   bool
	MayNest  bool
	MaySet   bool // the visitor may change its settings
	MayPlan  bool // and its labels, milestones and boards
	Wiki     bool // the user may read its wiki
	SignedIn bool
}

func (w *Web) groupHead(v *visit, ref project.Ref, tab string) (groupHead, error) {
	n, err := w.Projects.Group(v, v.actor, ref)
	if err != nil {
		return groupHead{}, err
	}
	h := groupHead{Group: n, Parents: above(crumbs(n.FullPath, n.FullName)), Tab: tab, SignedIn: v.session != nil}
	may, err := w.Projects.RightsIn(v, v.actor, n)
	v.level = int64(may.Level)
	h.MayAdd, h.MayNest, h.MaySet, h.MayPlan = may.AddProjects, may.AddGroups, may.ChangeSettings, may.Plan
	if err == nil {
		h.Wiki, err = w.Wikis.Sees(v, v.actor, n)
	}
	v.inside = h.sideBar()
	h.Section = v.inside.section(v)
	return h, err
}

// groupView is a group with its subgroups and projects.
type groupView struct {
	groupHead
	About             template.HTML // the description
	Tree              []*treeNode
	Members           []*project.Member
	Pager             pager
	Search            string
	Sort              string // of the tree
	Membership        project.MembershipState
	NotificationLevel notify.Level // of the visitor, in this group
}

// crumb is a breadcrumb.
type crumb struct{ Name, Path string }

func (groupView) view() string    { return "group/group" }
func (p groupView) title() string { return p.Group.FullName }

func (w *Web) group(v *visit, ref project.Ref) error {
	h, err := w.groupHead(v, ref, v.param("tab"))
	if err != nil {
		return err
	}
	p := groupView{groupHead: h, Search: v.param("search")}
	if p.About, err = w.description(v, h.Group.Description); err != nil {
		return err
	}
	if h.SignedIn {
		at := project.Place{Ref: ref, Group: true}
		if p.Membership, err = w.Projects.MembershipState(v, v.actor, at); err != nil {
			return err
		}
		if p.NotificationLevel, err = w.Notify.LevelAt(v, v.actor, at); err != nil {
			return err
		}
	}
	if p.Tab == "members" {
		page, err := w.Projects.Members(v, v.actor, project.Place{Ref: ref, Group: true}, project.MemberFilter{All: true, Query: p.Search}, v.paging())
		if err != nil {
			return err
		}
		p.Members, p.Pager = page.Items, v.pager(page.More)
		return v.show(p)
	}
	p.Tab = "projects"
	if err := w.groupTree(v, ref, &p); err != nil {
		return err
	}
	return v.show(p)
}

// above returns the breadcrumbs without the last one.
func above(list []crumb) []crumb { return list[:len(list)-1] }

// crumbs returns the breadcrumbs of a group: the names of its ancestors, and
// its own.
func crumbs(fullPath, fullName string) []crumb {
	paths, names := strings.Split(fullPath, "/"), strings.Split(fullName, " / ")
	var list []crumb
	for i := range paths {
		name := paths[i]
		if len(names) == len(paths) {
			name = names[i]
		}
		list = append(list, crumb{name, "/" + strings.Join(paths[:i+1], "/")})
	}
	return list
}
