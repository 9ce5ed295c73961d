package web

import (
	"io"
	"net/http"
	"strconv"
	"time"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/transfer"
)

// exportPage is the export of a group or project.
type exportPage struct {
	setup
	Last  *transfer.Export
	Ready *transfer.Export
	At    string // URL of the file
}

func (exportPage) view() string    { return "shared/settings_export" }
func (p exportPage) title() string { return "Export · " + p.Name() }

func (w *Web) showExport(v *visit, in project.Place, read func() (*transfer.Exports, error)) error {
	s, err := w.setup(v, in, "export")
	if err != nil {
		return err
	}
	found, err := read()
	if err != nil {
		return err
	}
	return v.show(exportPage{s, found.Last, found.Ready, pathTo(placePath(in)) + "/-/download_export"})
}

// sendExport sends the file of an export.
func (v *visit) sendExport(name string, at time.Time, file io.ReadSeeker) error {
	foreignFile(v.w.Header(), name, "no-store")
	http.ServeContent(v.w, v.r, "", at, file)
	return nil
}

// importPage is the form for an import of a group or project.
type importPage struct {
	Project bool
	Form    form
	Places  []*project.Namespace
	Imports []*transfer.Import // the latest of the visitor
}

func (importPage) view() string    { return "shared/new_import" }
func (p importPage) title() string { return "Import " + p.Noun() }

// Noun returns "project" or "group".
func (p importPage) Noun() string { return transferNoun(p.Project) }

func transferNoun(project bool) string {
	if project {
		return "project"
	}
	return "group"
}

// importKind has the differences between imports of groups and of projects.
type importKind struct {
	project bool
	place   string // what a namespace for the import is called
	at      string // URL of the imports
	places  func(v *visit) ([]*project.Namespace, error)
	latest  func(v *visit, p db.Paging) (db.Page[*transfer.Import], error)
	start   func(v *visit, placeID *int64) (*transfer.Import, error)
}

func (k importKind) show(v *visit, f form) error {
	places, err := k.places(v)
	if err != nil {
		return err
	}
	latest, err := k.latest(v, db.Paging{Limit: 10})
	if err != nil {
		return err
	}
	f.only("name", "path", "parent_id", "file", "url")
	return v.showForm(importPage{Project: k.project, Form: f, Places: places, Imports: latest.Items}, f)
}

// submit starts an import with the form that was sent.
func (k importKind) submit(v *visit) error {
	f := v.sent()
	var place *int64
	if text := v.text("parent_id"); text != "" {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			f.Errors = map[string][]string{"parent_id": {"is not a " + k.place + " that you can access"}}
			return k.show(v, f)
		}
		place = &id
	}
	if v.file == nil && (!k.project || v.text("url") == "") {
		f.Errors = map[string][]string{"file": {"must be selected"}}
		return k.show(v, f)
	}
	made, err := k.start(v, place)
	if errs.Is(err, errs.KindTooLarge) {
		return err
	}
	if err != nil {
		if err := f.refusedInPlace(err, "parent_id"); err != nil {
			return err
		}
		return k.show(v, f)
	}
	return v.redirect(k.at + strconv.FormatInt(made.ID, 10))
}

// fileImportPage is the import of a group or project from a file.
type fileImportPage struct {
	Import *transfer.Import
	At     string // path of the new group or project, if the visitor can see it
	Counts []importCount
}

// Noun is what is imported.
func (p fileImportPage) Noun() string { return transferNoun(p.Import.Project) }

// importCount is the number of imported objects of a kind.
type importCount struct {
	N    int64
	What string
}

func (fileImportPage) view() string    { return "shared/file_import" }
func (p fileImportPage) title() string { return "Import of " + p.Import.Name }

// showFileImport shows an import. path returns the path of what was imported, or
// NotFound.
func showFileImport(v *visit, i *transfer.Import, path func(project.Ref) (string, error)) error {
	p := fileImportPage{Import: i}
	if i.OwnerID != nil {
		at, err := path(project.RefTo(*i.OwnerID))
		if err != nil && !errs.Is(err, errs.KindNotFound) {
			return err
		}
		if err == nil {
			p.At = at
		}
	}
	in := i.Report.Imported
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
