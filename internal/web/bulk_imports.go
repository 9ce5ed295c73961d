package web

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/transfer"
	"svc/internal/transfer/remote"
)

func (w *Web) bulkImportPages() {
	w.page("GET /-/bulk_imports", signedIn, w.bulkImportForm)
	w.page("POST /-/bulk_imports/source", signedIn, w.openBulkSource)
	w.page("POST /-/bulk_imports", signedIn, w.startBulkImport)
	w.page("GET /-/bulk_imports/{id}", signedIn, w.bulkImport)
	w.page("GET /-/bulk_imports/{id}/entities/{entity}", signedIn, w.bulkFailures)
	w.page("POST /-/bulk_imports/{id}/cancel", signedIn, w.cancelBulkImport)
}

// bulkImportForm asks for the source, and then for what to import from it.
type bulkImportForm struct {
	Form    form
	Imports []*transfer.BulkImport // of the visitor
	// Of the second step.
	Source   string // the sealed URL and token; empty in the first step
	Address  string
	Groups   []remote.Place
	Projects []remote.Place
	Most     int // that are listed of each
	Places   []*project.Namespace
}

func (bulkImportForm) view() string  { return "shared/bulk_import_form" }
func (bulkImportForm) title() string { return "Import from another server" }

// TokenHint describes the token.
func (bulkImportForm) TokenHint() string {
	return "With the scopes read_api and read_repository. It is encrypted, and removed when the import ends."
}

// maxSourcePlaces is the maximum number of groups, and of projects, of a source
// that are listed.
const maxSourcePlaces = 200

// sourceTime bounds the time in which a source must list its groups and projects.
const sourceTime = 30 * time.Second

func (w *Web) bulkImportForm(v *visit) error { return w.showBulkForm(v, form{}) }

func (w *Web) showBulkForm(v *visit, f form) error {
	latest, err := w.Transfer.BulkImports(v, v.actor, transfer.BulkFilter{}, db.Paging{Limit: 20})
	if err != nil {
		return err
	}
	f.only("url", "access_token")
	return v.showForm(bulkImportForm{Form: f, Imports: latest.Items}, f)
}

// openBulkSource lists the groups and projects of the source, or shows why it
// cannot be read.
func (w *Web) openBulkSource(v *visit) error {
	f := v.sent()
	source, err := w.Transfer.SealSource(v, v.actor, v.text("url"), v.text("access_token"))
	if err == nil {
		err = w.showBulkSource(v, source, f)
		if err == nil {
			return nil
		}
	}
	var failure *remote.Failure
	if errors.As(err, &failure) {
		f.Error = failure.Text
	} else if err := f.refused(err); err != nil {
		return err
	}
	f.Values.Del("access_token")
	return w.showBulkForm(v, f)
}

// showBulkSource shows the second step. remote.Failure if the source cannot be read.
func (w *Web) showBulkSource(v *visit, source string, f form) error {
	client, address, done, err := w.Transfer.OpenSource(v, v.actor, source)
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeoutCause(v, sourceTime, &remote.Failure{Text: "The source took too long to answer."})
	defer cancel()
	p := bulkImportForm{Source: source, Address: address, Most: maxSourcePlaces}
	search := v.text("search")
	if p.Groups, err = client.ListGroups(ctx, search, maxSourcePlaces); err != nil {
		return err
	}
	if p.Projects, err = client.ListProjects(ctx, search, maxSourcePlaces); err != nil {
		return err
	}
	if p.Places, err = w.newProjectPlaces(v); err != nil {
		return err
	}
	f.only("entities", "destination_namespace")
	p.Form = f
	return v.showForm(p, f)
}

func (w *Web) startBulkImport(v *visit) error {
	f := v.sent()
	source := v.text("source")
	address, token, err := w.Transfer.UnsealSource(v.actor, source)
	if err != nil {
		f.Error = "The form has expired. Enter the access token again."
		return w.showBulkForm(v, form{Values: filled().Values, Error: f.Error})
	}
	n := transfer.NewBulkImport{URL: address, Token: token}
	for _, name := range []string{"group", "project"} {
		for _, from := range v.r.PostForm[name] {
			n.Entities = append(n.Entities, transfer.NewEntity{
				Project: name == "project", SourcePath: from, Slug: path.Base(from), Namespace: v.text("destination_namespace"), Projects: v.ticked("projects"), Members: v.ticked("members"),
			})
		}
	}
	made, err := w.Transfer.StartBulkImport(v, v.actor, n)
	if err == nil {
		return v.redirect(fmt.Sprintf("/-/bulk_imports/%d", made.ID))
	}
	if errs.Is(err, errs.KindForbidden) || errs.Is(err, errs.KindNotFound) {
		f.Errors = map[string][]string{"destination_namespace": {"is not a namespace where you can do this"}}
	} else if err := f.refused(err); err != nil {
		return err
	}
	err = w.showBulkSource(v, source, f)
	var failure *remote.Failure
	if errors.As(err, &failure) {
		f.Error = failure.Text
		return w.showBulkForm(v, f)
	}
	return err
}

// bulkImportPage is the progress of an import, and then its report.
type bulkImportPage struct {
	Import   *transfer.BulkImport
	Entities []bulkRow
	Done     int // entities that are over
	All      int
	Percent  int
	Pager    pager
}

// bulkRow is a group or project with the objects that were not imported.
type bulkRow struct {
	*transfer.Entity
	Lost []lostRow
}

// lostRow is an object that was not imported.
type lostRow struct {
	*transfer.Failure
	URL string
}

// Noun returns the type of the entity in words.
func (r bulkRow) Noun() string { return transferNoun(r.Project) }

// Unlisted is the number of failures that are not listed.
func (r bulkRow) Unlisted() int64 { return r.Failures - int64(len(r.Lost)) }

// Doing is the current step in words.
func (r bulkRow) Doing() string { return strings.ReplaceAll(r.Phase, "_", " ") }

func (bulkImportPage) view() string    { return "shared/bulk_import" }
func (p bulkImportPage) title() string { return "Import from " + p.Import.SourceURL }

func (w *Web) bulkImport(v *visit) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	b, err := w.Transfer.BulkImport(v, v.actor, id)
	if err != nil {
		return err
	}
	list, err := w.Transfer.BulkEntities(v, v.actor, id, transfer.BulkFilter{Ascending: true}, v.paging())
	if err != nil {
		return err
	}
	lost, err := w.Transfer.BulkFailures(v, list.Items, maxLost)
	if err != nil {
		return err
	}
	p := bulkImportPage{Import: b, Pager: v.pager(list.More)}
	for _, e := range list.Items {
		row := bulkRow{Entity: e, Lost: lostRows(b, lost[e.ID])}
		if e.Going() {
			p.Percent += e.Percent()
		}
		p.Entities = append(p.Entities, row)
	}
	if p.Done, p.All, err = w.Transfer.BulkProgress(v, b); err != nil {
		return err
	}
	p.Percent = (p.Percent + 100*p.Done) / max(p.All, 1)
	return v.show(p)
}

// maxLost is how many objects of an entity that were not imported the page of an import
// shows. The page of the entity has the others.
const maxLost = 10

func lostRows(b *transfer.BulkImport, list []*transfer.Failure) (rows []lostRow) {
	for _, f := range list {
		one := lostRow{Failure: f}
		if f.Path != "" {
			one.URL = b.SourceURL + f.Path
		}
		rows = append(rows, one)
	}
	return rows
}

// bulkFailuresPage lists what of a group or project was not imported.
type bulkFailuresPage struct {
	Import *transfer.BulkImport
	Row    bulkRow
	Pager  pager
}

func (bulkFailuresPage) view() string    { return "shared/bulk_failures" }
func (p bulkFailuresPage) title() string { return "Import of " + p.Row.SourcePath }

// Unstored is the number of failures that are counted, but not listed.
func (p bulkFailuresPage) Unstored() int64 {
	return max(p.Row.Failures-transfer.MaxFailures, 0)
}

func (w *Web) bulkFailures(v *visit) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	entity, err := v.number("entity")
	if err != nil {
		return err
	}
	b, err := w.Transfer.BulkImport(v, v.actor, id)
	if err != nil {
		return err
	}
	e, err := w.Transfer.BulkEntity(v, v.actor, id, entity)
	if err != nil {
		return err
	}
	list, err := w.Transfer.BulkEntityFailures(v, v.actor, id, entity, v.paging())
	if err != nil {
		return err
	}
	return v.show(bulkFailuresPage{Import: b, Row: bulkRow{Entity: e, Lost: lostRows(b, list.Items)}, Pager: v.pager(list.More)})
}

func (w *Web) cancelBulkImport(v *visit) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	_, err = w.Transfer.CancelBulkImport(v, v.actor, id)
	return v.redirectWithFlash(err, "The import was canceled.", fmt.Sprintf("/-/bulk_imports/%d", id))
}
