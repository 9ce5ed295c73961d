package web

import (
	"time"

	"svc/internal/project"
	"svc/internal/transfer"
)

// transferContents are the pages of exports and imports of groups.
func transferContents() []content {
	now := time.Unix(1e9, 0)
	g := &project.Namespace{ID: 1, Name: "G", FullPath: "g", FullName: "G"}
	of := setup{G: &groupHead{Group: g, Tab: "settings", MaySet: true}, Base: "/groups/g/-/settings/", Part: "export", Owner: true}
	ready := &transfer.Export{State: transfer.Finished, Size: 1 << 20, FinishedAt: &now, ExpiresAt: &now}
	going := &transfer.Import{ID: 1, Name: "N", Path: "n", State: transfer.Started, Done: 1, Total: 2, CreatedAt: now}
	lost := transfer.Report{Missing: []transfer.Missing{{Thing: "member", Group: "a", Name: "bob", Why: "nobody"}}, Lost: map[string]int64{"member": 2}}
	return []content{
		exportPage{setup: of}, exportPage{setup: of, Last: ready, Ready: ready, At: "/x"}, exportPage{setup: of, Last: &transfer.Export{State: transfer.Started, Done: 1, Total: 3}, Ready: ready},
		exportPage{setup: of, Last: &transfer.Export{State: transfer.Queued}}, exportPage{setup: of, Last: &transfer.Export{State: transfer.Failed, Error: "no", FinishedAt: &now}},
		importPage{Form: form{Errors: map[string][]string{"file": {"x"}, "path": {"x"}, "parent_id": {"x"}}, Error: "no"}, Places: []*project.Namespace{g}, Imports: []*transfer.Import{going}}, importPage{},
		groupImportPage{Import: going}, groupImportPage{Import: &transfer.Import{Name: "N", State: transfer.Queued}}, groupImportPage{Import: &transfer.Import{Name: "N", State: transfer.Failed, Error: "no"}},
		groupImportPage{Import: &transfer.Import{Name: "N", State: transfer.Finished, Report: lost}, Group: g, Counts: []importCount{{2, "label"}}}, groupImportPage{Import: &transfer.Import{Name: "N", State: transfer.Finished}},
	}
}
