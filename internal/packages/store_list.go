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

// listPackages lists packages k of projects p that a condition selects.
func listPackages(ctx context.Context, d *db.DB, f Filter, pg db.Paging, cond string, args ...any) (db.Page[*Package], error) {
	var w db.Where
	w.And(cond, args...)
	if f.Status == "" {
		f.Status = Default
	}
	w.And("k.status = ?", string(f.Status))
	if f.Type != "" {
		w.And("k.type = ?", string(f.Type))
	}
	if f.Name != "" {
		w.And(`lower(k.name) LIKE ? ESCAPE '\'`, db.Like(f.Name))
	}
	if f.Version != "" {
		w.And("k.version = ?", f.Version)
	}
	return db.List(ctx, d, db.Query[*Package]{
		Columns: listedColumns + ", p.full_path", From: "packages k JOIN projects p ON p.id = k.project_id", Where: w,
		Order: orders[f.OrderBy], Desc: f.Desc, Scan: scanListed,
	}, pg)
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
