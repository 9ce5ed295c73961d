package packages

import (
	"context"

	"svc/internal/db"
)

// orders are the columns of each order of a list; the last is unique.
var orders = map[string][]db.Order{
	"":             {{Name: "k.created_at"}, {Name: "k.id"}},
	"created_at":   {{Name: "k.created_at"}, {Name: "k.id"}},
	"name":         {{Name: "k.name", Text: true}, {Name: "k.id"}},
	"version":      {{Name: "k.version", Text: true}, {Name: "k.id"}},
	"type":         {{Name: "k.type", Text: true}, {Name: "k.id"}},
	"project_path": {{Name: "p.full_path", Text: true}, {Name: "k.id"}},
}

// listPackages lists packages k of projects p that a condition selects: those of a
// project, if its ID is not 0.
func listPackages(ctx context.Context, d *db.DB, projectID int64, f Filter, pg db.Paging, cond string, args ...any) (db.Page[*Package], error) {
	var w db.Where
	w.And(cond, args...)
	if f.Status == "" {
		f.Status = Default
	}
	w.And("k.status = ?", string(f.Status))
	f.whereKind(&w)
	if f.Name != "" {
		w.And(`lower(k.name) LIKE ? ESCAPE '\'`, db.Like(f.Name))
	}
	q := db.Query[*Package]{
		Columns: listedColumns + ", p.full_path", From: "packages k JOIN projects p ON p.id = k.project_id", Where: w,
		Order: orders[f.OrderBy], Desc: f.Desc, Scan: scanListed,
	}
	switch {
	case projectID != 0:
		among, err := f.candidates(ctx, d, projectID)
		if err != nil {
			return db.Page[*Package]{}, err
		}
		q.Among = among
	case f.OrderBy == "" || f.OrderBy == "created_at":
		q.First = func(ctx context.Context, d *db.DB, rows int) ([]int64, error) {
			window := db.Window{Table: "packages k", Key: "k.id", Order: []string{"k.created_at", "k.id"}, Desc: f.Desc, Size: listWindow}
			return window.Find(ctx, d, q.From, w, rows)
		}
	}
	return db.List(ctx, d, q, pg)
}

// listWindow is the number of packages of the instance, at the start of a list of a group,
// that are examined one by one before all packages of the group are sorted.
const listWindow = 600

// maxListed is the number of candidates up to which they are sorted. With more, reading in
// the order of the list soon finds a page.
const maxListed = 100

// whereKind adds the conditions that an index has for each project.
func (f Filter) whereKind(w *db.Where) {
	if f.Type != "" {
		w.And("k.type = ?", string(f.Type))
	}
	if f.Version != "" {
		w.And("k.version = ?", f.Version)
	}
}

// candidates returns the packages of a project with the type and version of the filter;
// nil if there are many or the filter has neither.
func (f Filter) candidates(ctx context.Context, d *db.DB, projectID int64) ([]int64, error) {
	if f.Type == "" && f.Version == "" {
		return nil, nil
	}
	var w db.Where
	w.And(inProject, projectID)
	f.whereKind(&w)
	ids, few, err := d.Few(ctx, `SELECT k.id FROM packages k`+w.SQL(), w.Args(), maxListed)
	if err != nil || !few {
		return nil, err
	}
	return append([]int64{}, ids...), nil // not nil: none match
}

var fileOrders = map[string][]db.Order{
	"":           {{Name: "f.id"}},
	"id":         {{Name: "f.id"}},
	"created_at": {{Name: "f.created_at"}, {Name: "f.id"}},
	"file_name":  {{Name: "f.name", Text: true}, {Name: "f.id"}},
}

func listFiles(ctx context.Context, d *db.DB, packageID int64, f FileFilter, pg db.Paging) (db.Page[*File], error) {
	var w db.Where
	w.And("f.package_id = ?", packageID)
	return db.List(ctx, d, db.Query[*File]{
		Columns: fileColumns, From: fileTables, Where: w, Order: fileOrders[f.OrderBy], Desc: f.Desc, Scan: scanFile, CountFrom: "package_files f",
	}, pg)
}
