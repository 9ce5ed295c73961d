package web

import (
	"fmt"
	"net/http"
	"strconv"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/transfer"
)

func (w *Web) groupTransferPages() {
	w.groupPage("GET settings/export", signedIn, w.groupExport)
	w.groupPage("POST settings/export", signedIn, w.startExport)
	w.groupPage("GET download_export", signedIn, w.downloadExport)
	w.page("GET /groups/new/import", signedIn, w.importForm)
	w.page("POST /groups/import", uploader, w.startImport)
	w.page("GET /-/group_imports/{id}", signedIn, w.groupImport)
}

type exportPage struct {
	setup
	Last  *transfer.Export
	Ready *transfer.Export
	At    string // where the file is
}

func (exportPage) view() string    { return "group/settings_export" }
func (p exportPage) title() string { return "Export · " + p.Name() }

func (w *Web) groupExport(v *visit, ref project.Ref) error {
	in := project.Place{Ref: ref, Group: true}
	s, err := w.setup(v, in, "export")
	if err != nil {
		return err
	}
	found, err := w.Transfer.Exports(v, v.actor, ref)
	if err != nil {
		return err
	}
	return v.show(exportPage{s, found.Last, found.Ready, pathTo(placePath(in)) + "/-/download_export"})
}

func (w *Web) startExport(v *visit, ref project.Ref) error {
	_, err := w.Transfer.StartExport(v, v.actor, ref)
	return v.redirectWithFlash(err, "The export was started.", settingsOf(project.Place{Ref: ref, Group: true}, "export"))
}

func (w *Web) downloadExport(v *visit, ref project.Ref) error {
	found, file, err := w.Transfer.OpenExport(v, v.actor, ref)
	if err != nil {
		return err
	}
	defer file.Close()
	foreignFile(v.w.Header(), found.FileName(), "no-store")
	http.ServeContent(v.w, v.r, "", file.ModTime, file)
	return nil
}

// importPage is the form for an import of a group or project.
type importPage struct {
	Project bool
	Form    form
	Places  []*project.Namespace
	Imports []*transfer.Import // the latest of the visitor
}

func (importPage) view() string    { return "group/import_group" }
func (p importPage) title() string { return "Import " + p.Noun() }

// Noun is what is imported.
func (p importPage) Noun() string { return transferNoun(p.Project) }

func transferNoun(project bool) string {
	if project {
		return "project"
	}
	return "group"
}

func (w *Web) importForm(v *visit) error {
	return w.showImport(v, filled("parent_id", v.param("parent_id")))
}

func (w *Web) showImport(v *visit, f form) error {
	places, err := w.Projects.Groups(v, v.actor, project.GroupsFilter{MinLevel: project.Maintainer}, project.Sort{By: "path"}, db.Paging{Limit: 200})
	if err != nil {
		return err
	}
	latest, err := w.Transfer.Imports(v, v.actor, db.Paging{Limit: 10})
	if err != nil {
		return err
	}
	f.only("name", "path", "parent_id", "file")
	return v.showForm(importPage{Form: f, Places: places.Items, Imports: latest.Items}, f)
}

func (w *Web) startImport(v *visit) error {
	f := v.sent()
	n := transfer.NewImport{Name: v.text("name"), Path: v.text("path"), File: v.file}
	if text := v.text("parent_id"); text != "" {
		parent, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			f.Errors = map[string][]string{"parent_id": {"is not a group that you can access"}}
			return w.showImport(v, f)
		}
		n.ParentID = &parent
	}
	if v.file == nil {
		f.Errors = map[string][]string{"file": {"must be selected"}}
		return w.showImport(v, f)
	}
	made, err := w.Transfer.StartImport(v, v.actor, n)
	if errs.Is(err, errs.KindTooLarge) {
		return err
	}
	if err != nil {
		if err := f.refusedInPlace(err, "parent_id"); err != nil {
			return err
		}
		return w.showImport(v, f)
	}
	return v.redirect(fmt.Sprintf("/-/group_imports/%d", made.ID))
}

type groupImportPage struct {
	Import *transfer.Import
	At     string // the path of what was made, if the visitor sees it
	Counts []importCount
}

// Noun is what is imported.
func (p groupImportPage) Noun() string { return transferNoun(p.Import.Project) }

// importCount is how much of something came.
type importCount struct {
	N    int64
	What string
}

func (groupImportPage) view() string    { return "group/group_import" }
func (p groupImportPage) title() string { return "Import of " + p.Import.Name }

func (w *Web) groupImport(v *visit) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	i, err := w.Transfer.Import(v, v.actor, id)
	if err != nil {
		return err
	}
	p := groupImportPage{Import: i}
	if i.OwnerID != nil {
		g, err := w.Projects.Group(v, v.actor, project.RefTo(*i.OwnerID))
		if err != nil && !errs.Is(err, errs.KindNotFound) {
			return err
		}
		if err == nil {
			p.At = g.FullPath
		}
	}
	return p.show(v)
}

// show shows how much of everything came.
func (p groupImportPage) show(v *visit) error {
	in := p.Import.Report.Imported
	for _, c := range []importCount{
		{in.Groups, "group"}, {in.Issues, "issue"}, {in.MergeRequests, "merge request"}, {in.Notes, "comment"}, {in.Labels, "label"}, {in.Milestones, "milestone"},
		{in.Boards, "board"}, {in.Badges, "badge"}, {in.Members, "member"}, {in.Avatars, "picture"}, {in.Repositories, "repository"}, {in.Wikis, "wiki"},
		{in.LFSObjects, "LFS object"}, {in.Uploads, "upload"}, {in.Releases, "release"}, {in.Snippets, "snippet"}, {in.ProtectedRefs, "protected branch or tag"},
	} {
		if c.N > 0 {
			p.Counts = append(p.Counts, c)
		}
	}
	return v.show(p)
}
