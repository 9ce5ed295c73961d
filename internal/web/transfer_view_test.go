package web

import (
	"time"

	"svc/internal/project"
	"svc/internal/transfer"
)

// transferContents are the pages of exports and imports of groups and projects.
func transferContents() []content {
	now := time.Unix(1e9, 0)
	g := &project.Namespace{ID: 1, Name: "G", FullPath: "g", FullName: "G"}
	of := setup{G: &groupHead{Group: g, Tab: "settings", MaySet: true}, Base: "/groups/g/-/settings/", Part: "export", Owner: true}
	ready := &transfer.Export{State: transfer.Finished, Size: 1 << 20, FinishedAt: &now, ExpiresAt: &now}
	going := &transfer.Import{ID: 1, Name: "N", Path: "n", State: transfer.Started, Done: 1, Total: 2, CreatedAt: now}
	lost := transfer.Report{Missing: []transfer.Missing{{Thing: "member", Group: "a", Name: "bob", Why: "nobody"}}, Lost: map[string]int64{"member": 2}}
	pageOf := setup{P: &head{Project: &project.Project{ID: 1, Name: "P", FullPath: "g/p"}, MaySet: true}, Base: "/g/p/-/settings/", Part: "export", Owner: true}
	return []content{
		exportPage{setup: pageOf}, exportPage{setup: pageOf, Last: ready, Ready: ready, At: "/x"}, importPage{Project: true, Places: []*project.Namespace{g}, Imports: []*transfer.Import{going}},
		groupImportPage{Import: &transfer.Import{Project: true, ID: 3, Name: "N", State: transfer.Started, CreatedAt: now}}, groupImportPage{Import: &transfer.Import{Project: true, Name: "N", State: transfer.Failed, Error: "no"}},
		groupImportPage{Import: &transfer.Import{Project: true, Name: "N", State: transfer.Finished, Report: lost}, At: "g/p", Counts: []importCount{{2, "issue"}}},
		exportPage{setup: of}, exportPage{setup: of, Last: ready, Ready: ready, At: "/x"}, exportPage{setup: of, Last: &transfer.Export{State: transfer.Started, Done: 1, Total: 3}, Ready: ready},
		exportPage{setup: of, Last: &transfer.Export{State: transfer.Queued}}, exportPage{setup: of, Last: &transfer.Export{State: transfer.Failed, Error: "no", FinishedAt: &now}},
		importPage{Form: form{Errors: map[string][]string{"file": {"x"}, "path": {"x"}, "parent_id": {"x"}}, Error: "no"}, Places: []*project.Namespace{g}, Imports: []*transfer.Import{going}}, importPage{},
		groupImportPage{Import: going}, groupImportPage{Import: &transfer.Import{Name: "N", State: transfer.Queued}}, groupImportPage{Import: &transfer.Import{Name: "N", State: transfer.Failed, Error: "no"}},
		groupImportPage{Import: &transfer.Import{Name: "N", State: transfer.Finished, Report: lost}, At: "g", Counts: []importCount{{2, "label"}}}, groupImportPage{Import: &transfer.Import{Name: "N", State: transfer.Finished}},
	}
}
