package web

import (
	"time"

	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/repo"
)

func (w *Web) branchPages() {
	w.projectPage("GET branches", anyone, w.branches)
	w.projectPage("POST branches", signedIn, w.createBranch)
	w.projectPage("POST branches/delete", signedIn, w.deleteBranch)
}

// staleAfter is the time without commits after which a branch is stale.
const staleAfter = 90 * 24 * time.Hour

// branchRow is a branch in the list.
type branchRow struct {
	repo.Branch
	repo.Distance
	Known bool // Ahead and Behind are known
	Stale bool
}

type branchesPage struct {
	head
	Rows   []branchRow
	Total  int
	State  string // active, stale, or empty for all
	Search string
	Pager  pager
	Form   form
	MayAdd bool
}

func (branchesPage) view() string    { return "project/branches" }
func (p branchesPage) title() string { return "Branches · " + p.Project.FullName() }

func (w *Web) branches(v *visit, ref project.Ref) error {
	p, err := w.branchList(v, ref)
	if err != nil {
		return err
	}
	p.Form = filled("ref", p.Project.DefaultBranch)
	return v.show(p)
}

func (w *Web) branchList(v *visit, ref project.Ref) (branchesPage, error) {
	h, err := w.head(v, ref, "branches")
	if err != nil {
		return branchesPage{}, err
	}
	p := branchesPage{head: h, Search: v.param("search"), State: v.param("state")}
	p.MayAdd = h.MayPush && h.Project.DefaultBranch != ""
	old := w.Now().Add(-staleAfter)
	f := repo.RefFilter{Search: p.Search, Order: repo.ByUpdated, Desc: true}
	switch p.State {
	case "active":
		f.Since = old
	case "stale":
		f.Until = old
	default:
		p.State = ""
	}
	_, page, err := w.Repos.Branches(v, v.actor, h.in(), f, v.paging())
	if err != nil {
		return p, err
	}
	names := make([]string, len(page.Items))
	for i, b := range page.Items {
		names[i] = b.Name
	}
	far, err := w.Repos.Distances(v, v.actor, h.in(), names)
	if err != nil && !errs.Is(err, errs.KindUnavailable) {
		return p, err
	}
	for _, b := range page.Items {
		row := branchRow{Branch: b, Stale: b.Commit.Committer.When.Before(old)}
		row.Distance, row.Known = far[b.Name]
		p.Rows = append(p.Rows, row)
	}
	p.Total, p.Pager = page.Total, v.pager(page.More)
	return p, nil
}

func (w *Web) createBranch(v *visit, ref project.Ref) error {
	f := v.sent()
	p, b, err := w.Repos.CreateBranch(v, v.actor, ref, v.text("name"), v.text("ref"))
	if err == nil {
		return v.done("The branch "+b.Name+" was created.", pathTo(p.FullPath, "-", "tree", b.Name))
	}
	if err := f.refused(err); err != nil {
		return err
	}
	page, err := w.branchList(v, ref)
	if err != nil {
		return err
	}
	page.Form = f
	return v.again(page)
}

// deleteBranch reads the name from the form, because a branch name can contain
// any characters.
func (w *Web) deleteBranch(v *visit, ref project.Ref) error {
	name := v.sent().Get("name")
	if err := w.Repos.DeleteBranch(v, v.actor, ref, name); err != nil {
		return err
	}
	return v.done("The branch "+name+" was deleted.", "/"+string(ref)+"/-/branches")
}
