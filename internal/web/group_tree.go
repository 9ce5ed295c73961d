package web

import (
	"strings"

	"svc/internal/db"
	"svc/internal/project"
)

// treeNode is a subgroup or a project in the tree of a group.
type treeNode struct {
	Group    *project.Namespace // nil for a project
	Project  *project.Project
	Counts   project.ChildCounts // of a subgroup
	Children []*treeNode         // of a subgroup; empty if the page does not show the whole tree
}

// maxTree is the number of subgroups, and of projects, up to which a page shows
// the whole tree below a group. A larger group is shown level by level.
const maxTree = 50

// groupOrders are the orders of the tree, of subgroups and of projects.
func groupOrders(name string) (groups, projects project.Sort, known string) {
	switch name {
	case "name":
		return project.Sort{By: "name"}, project.Sort{By: "name"}, name
	case "new":
		return project.Sort{By: "id", Desc: true}, project.Sort{By: "created_at", Desc: true}, name
	}
	return project.Sort{By: "name"}, orders()[""], ""
}

// groupTree reads the subgroups and projects of a group: the whole tree if it
// is small, otherwise a page of its direct children. A search returns a page of
// matches on all levels.
func (w *Web) groupTree(v *visit, ref project.Ref, p *groupView) error {
	groupOrder, projectOrder, known := groupOrders(v.param("sort"))
	p.Sort = known
	if p.Search == "" {
		done, err := w.wholeTree(v, ref, p, groupOrder, projectOrder)
		if err != nil || done {
			return err
		}
	}
	deep, paging := p.Search != "", v.paging()
	all := paging
	all.Totals = true
	groups, err := w.Projects.Subgroups(v, v.actor, ref, deep, project.GroupsFilter{AllAvailable: true, Search: p.Search}, groupOrder, all)
	if err != nil {
		return err
	}
	var ids []int64
	for _, g := range groups.Items {
		ids, p.Tree = append(ids, g.ID), append(p.Tree, &treeNode{Group: g})
	}
	counts, err := w.Projects.CountChildren(v, v.actor, ids)
	if err != nil {
		return err
	}
	for _, n := range p.Tree {
		n.Counts = counts[n.Group.ID]
	}
	// Projects come after the last subgroup.
	rest := db.Paging{Limit: max(paging.Limit-len(groups.Items), 1), Offset: max(paging.Offset-groups.Total, 0)}
	projects, err := w.Projects.GroupProjects(v, v.actor, ref, project.GroupFilter{WithShared: !deep, Subgroups: deep}, project.Filter{Search: p.Search}, projectOrder, rest)
	if err != nil {
		return err
	}
	more := groups.More || projects.More
	if len(groups.Items) == paging.Limit {
		more = groups.More || len(projects.Items) > 0
		projects.Items = nil
	}
	for _, one := range projects.Items {
		p.Tree = append(p.Tree, &treeNode{Project: one})
	}
	p.Pager = v.pager(more)
	return nil
}

// nameBelow is the full name of a subgroup or project without the names of the
// group that is shown, if it is in that group.
func nameBelow(group, fullPath, fullName string) string {
	if !strings.HasPrefix(fullPath, group+"/") {
		return fullName
	}
	names := strings.Split(fullName, " / ")
	return strings.Join(names[min(strings.Count(group, "/")+1, len(names)-1):], " / ")
}

// wholeTree reads all subgroups and projects below a group; done is false if
// there are too many.
func (w *Web) wholeTree(v *visit, ref project.Ref, p *groupView, groupOrder, projectOrder project.Sort) (done bool, err error) {
	limit := db.Paging{Limit: maxTree}
	groups, err := w.Projects.Subgroups(v, v.actor, ref, true, project.GroupsFilter{AllAvailable: true}, groupOrder, limit)
	if err != nil || groups.More {
		return false, err
	}
	projects, err := w.Projects.GroupProjects(v, v.actor, ref, project.GroupFilter{WithShared: true, Subgroups: true}, project.Filter{}, projectOrder, limit)
	if err != nil || projects.More {
		return false, err
	}
	nodes := map[int64]*treeNode{}
	for _, g := range groups.Items {
		nodes[g.ID] = &treeNode{Group: g}
	}
	root := &treeNode{}
	// parent returns the node above; the root for a project that is shared with
	// the group, and below a subgroup that the user does not see.
	parent := func(id *int64) *treeNode {
		if id != nil && nodes[*id] != nil {
			return nodes[*id]
		}
		return root
	}
	for _, g := range groups.Items {
		up := parent(g.ParentID)
		up.Counts.Groups++
		up.Children = append(up.Children, nodes[g.ID])
	}
	for _, one := range projects.Items {
		up := parent(&one.NamespaceID)
		up.Counts.Projects++
		up.Children = append(up.Children, &treeNode{Project: one})
	}
	p.Tree = root.Children
	return true, nil
}
