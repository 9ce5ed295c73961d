package web

import (
	"slices"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/instance"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/repo/storagemove"
)

func (w *Web) adminPages() {
	w.page("GET /admin", admins, w.adminOverview)
	w.page("GET /admin/setup", admins, w.adminSetup)
	w.page("POST /admin/setup/test_email", admins, w.sendTestEmail)
	w.page("GET /admin/groups", admins, w.adminGroups)
	w.page("GET /admin/projects", admins, w.adminProjects)
	w.page("GET /admin/nodes", admins, w.adminNodes)
	w.page("GET /admin/storages", admins, w.adminStorages)
	w.page("POST /admin/storages/moves", admins, w.moveStorage)
	w.page("GET /admin/background_jobs", admins, w.adminWork)
	w.page("POST /admin/background_jobs/{id}/retry", admins, w.retryWork)
	w.page("POST /admin/background_jobs/{id}/discard", admins, w.discardWork)
	w.adminUserPages()
	w.adminAuditPages()
	w.adminSettingsPages()
}

type overviewPage struct {
	Counts *instance.Counts
	Work   map[queue.State]int64
	Plots  []history
}

func (overviewPage) view() string  { return "admin/overview" }
func (overviewPage) title() string { return "Admin area" }

func (w *Web) adminOverview(v *visit) error {
	var p overviewPage
	var err error
	if p.Counts, err = w.Instance.Counts(v, v.actor); err != nil {
		return err
	}
	if p.Work, err = w.Instance.WorkCounts(v, v.actor); err != nil {
		return err
	}
	if w.Health != nil {
		p.Plots = plots(w.Health())
	}
	return v.show(p)
}

// Failed is the number of background jobs that failed permanently.
func (p overviewPage) Failed() int64 { return p.Work[queue.Failed] }

type adminListPage struct {
	Search   string
	Sort     string
	Archived string
	OfGroups bool
	Groups   []*project.Namespace
	Projects []*project.Project
	Pager    pager
}

func (adminListPage) view() string { return "admin/list" }

func (p adminListPage) title() string {
	if p.OfGroups {
		return "Groups · Admin area"
	}
	return "Projects · Admin area"
}

func (w *Web) adminGroups(v *visit) error {
	p := adminListPage{OfGroups: true, Search: v.param("search")}
	page, err := w.Projects.Groups(v, v.actor, project.GroupsFilter{Search: p.Search, AllAvailable: true}, project.Sort{By: "name"}, v.paging())
	if err != nil {
		return err
	}
	p.Groups, p.Pager = page.Items, v.pager(page.More)
	return v.show(p)
}

func (w *Web) adminProjects(v *visit) error {
	p := adminListPage{Search: v.param("search"), Sort: v.param("sort"), Archived: v.param("archived")}
	order, ok := orders()[p.Sort]
	if !ok {
		order, p.Sort = orders()[""], ""
	}
	f := project.Filter{Search: p.Search, Deep: true}
	if p.Archived != "" {
		only := p.Archived == "only"
		f.Archived = &only
	}
	page, err := w.Projects.List(v, v.actor, f, order, v.paging())
	if err != nil {
		return err
	}
	p.Projects, p.Pager = page.Items, v.pager(page.More)
	return v.show(p)
}

type nodesPage struct{ Nodes []instance.Node }

func (nodesPage) view() string  { return "admin/nodes" }
func (nodesPage) title() string { return "Nodes · Admin area" }

// Mixed reports whether nodes run different releases.
func (p nodesPage) Mixed() bool {
	return slices.ContainsFunc(p.Nodes, func(n instance.Node) bool { return n.Schema != p.Nodes[0].Schema })
}

func (w *Web) adminNodes(v *visit) error {
	var p nodesPage
	var err error
	if p.Nodes, err = w.Instance.Nodes(v, v.actor); err != nil {
		return err
	}
	return v.show(p)
}

type storagesPage struct {
	Storages []instance.Storage
	Progress storagemove.Progress
	Moves    []*storagemove.Move
	Pager    pager
}

func (storagesPage) view() string  { return "admin/storages" }
func (storagesPage) title() string { return "Repository storage · Admin area" }

func (w *Web) adminStorages(v *visit) error {
	var p storagesPage
	var err error
	if p.Storages, err = w.Instance.StorageList(v, v.actor); err != nil {
		return err
	}
	if p.Progress, err = w.Moves.Progress(v, v.actor); err != nil {
		return err
	}
	page, err := w.Moves.List(v, v.actor, storagemove.Filter{}, v.paging())
	if err != nil {
		return err
	}
	p.Moves, p.Pager = page.Items, v.pager(page.More)
	return v.show(p)
}

const storagesAt = "/admin/storages"

// moveStorage moves all repositories of a kind from one storage to another.
func (w *Web) moveStorage(v *visit) error {
	kind := storagemove.Kind(v.text("kind"))
	if kind != storagemove.Project && kind != storagemove.Snippet && kind != storagemove.Group {
		return errs.NotFound("")
	}
	err := w.Moves.MoveAll(v, v.actor, kind, v.text("source"), v.text("destination"))
	return v.redirectWithFlash(err, "The repository storage moves were scheduled. Each repository is read-only while it is moved.", storagesAt)
}

type workPage struct {
	State  queue.State
	States []workState
	Items  []queue.Item
	Pager  pager
}

// workState is a state of background jobs with their number.
type workState struct {
	Value queue.State
	Label string
	N     int64
}

func (workPage) view() string  { return "admin/background_jobs" }
func (workPage) title() string { return "Background jobs · Admin area" }

const workAt = "/admin/background_jobs"

func (w *Web) adminWork(v *visit) error {
	p := workPage{State: queue.State(v.param("state")), States: []workState{
		{"", "All", 0}, {queue.Running, "Running", 0}, {queue.Waiting, "Queued", 0}, {queue.Retry, "To be retried", 0},
		{queue.Failed, "Failed", 0}, {queue.GivenUp, "Discarded", 0},
	}}
	counts, err := w.Instance.WorkCounts(v, v.actor)
	if err != nil {
		return err
	}
	known := false
	for i := range p.States {
		s := &p.States[i]
		s.N = counts[s.Value]
		p.States[0].N += counts[s.Value]
		known = known || s.Value == p.State
	}
	if !known {
		p.State = ""
	}
	var page db.Page[queue.Item]
	if page, err = w.Instance.Work(v, v.actor, p.State, v.paging()); err != nil {
		return err
	}
	p.Items, p.Pager = page.Items, v.pager(page.More)
	return v.show(p)
}

func (w *Web) retryWork(v *visit) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	return v.redirectWithFlash(w.Instance.RetryWork(v, v.actor, id), "The job was queued again.", workAt)
}

func (w *Web) discardWork(v *visit) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	return v.redirectWithFlash(w.Instance.DropWork(v, v.actor, id), "The job was discarded.", workAt)
}
