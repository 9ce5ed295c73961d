package web

import (
	"time"

	"svc/internal/project"
	"svc/internal/transfer"
	"svc/internal/transfer/remote"
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
	bulk := &transfer.BulkImport{ID: 1, SourceURL: "https://old.example.org", State: transfer.Started, CreatedAt: now}
	place := []remote.Place{{ID: 1, Path: "g/p", Name: "P"}}
	missing := []lostRow{{&transfer.Failure{Relation: "variables", Title: "KEY", Message: "no"}, ""}, {&transfer.Failure{Relation: "issues", Title: "One", Message: "no"}, "https://old.example.org/g/p/-/issues/1"}}
	return []content{
		bulkImportForm{}, bulkImportForm{Form: form{Errors: map[string][]string{"url": {"x"}}, Error: "no"}, Imports: []*transfer.BulkImport{bulk}},
		bulkImportForm{Source: "sealed", Address: "https://old.example.org", Groups: place, Projects: place, Most: 1, Places: []*project.Namespace{g}, Form: form{Errors: map[string][]string{"entities": {"x"}, "destination_namespace": {"x"}}}},
		bulkImportForm{Source: "sealed", Most: 1},
		bulkImportPage{Import: bulk, All: 60, Pager: pager{After: "?page=2"}, Entities: []bulkRow{
			{Entity: &transfer.Entity{Slug: "p", Namespace: "g", SourcePath: "g/p", Project: true, State: transfer.Started, Phase: "merge_requests", Steps: 1, Total: 3}},
			{Entity: &transfer.Entity{Slug: "q", SourcePath: "q", State: transfer.Created}}, {Entity: &transfer.Entity{Slug: "g", State: transfer.Failed, Failures: 3}, Lost: missing},
		}},
		bulkImportPage{Import: &transfer.BulkImport{State: transfer.Finished}, Entities: []bulkRow{{Entity: &transfer.Entity{Slug: "g", State: transfer.Finished}}}},
		bulkFailuresPage{Import: bulk, Row: bulkRow{Entity: &transfer.Entity{ID: 2, Slug: "g", SourcePath: "g", State: transfer.Finished, Failures: 1002}, Lost: missing}, Pager: pager{After: "?page=2"}},
		exportPage{setup: pageOf}, exportPage{setup: pageOf, Last: ready, Ready: ready, At: "/x"}, importPage{Project: true, Places: []*project.Namespace{g}, Imports: []*transfer.Import{going}},
		fileImportPage{Import: &transfer.Import{Project: true, ID: 3, Name: "N", State: transfer.Started, CreatedAt: now}}, fileImportPage{Import: &transfer.Import{Project: true, Name: "N", State: transfer.Failed, Error: "no"}},
		fileImportPage{Import: &transfer.Import{Project: true, Name: "N", State: transfer.Finished, Report: lost}, At: "g/p", Counts: []importCount{{2, "issue"}}},
		exportPage{setup: of}, exportPage{setup: of, Last: ready, Ready: ready, At: "/x"}, exportPage{setup: of, Last: &transfer.Export{State: transfer.Started, Done: 1, Total: 3}, Ready: ready},
		exportPage{setup: of, Last: &transfer.Export{State: transfer.Queued}}, exportPage{setup: of, Last: &transfer.Export{State: transfer.Failed, Error: "no", FinishedAt: &now}},
		importPage{Form: form{Errors: map[string][]string{"file": {"x"}, "path": {"x"}, "parent_id": {"x"}}, Error: "no"}, Places: []*project.Namespace{g}, Imports: []*transfer.Import{going}}, importPage{},
		fileImportPage{Import: going}, fileImportPage{Import: &transfer.Import{Name: "N", State: transfer.Queued}}, fileImportPage{Import: &transfer.Import{Name: "N", State: transfer.Failed, Error: "no"}},
		fileImportPage{Import: &transfer.Import{Name: "N", State: transfer.Finished, Report: lost}, At: "g", Counts: []importCount{{2, "label"}}}, fileImportPage{Import: &transfer.Import{Name: "N", State: transfer.Finished}},
	}
}
