package packages

import (
	"context"
	"slices"

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
// project, if its ID is not 0, or of a group.
func listPackages(ctx context.Context, d *db.DB, projectID int64, f Filter, pg db.Paging, cond string, args ...any) (db.Page[*Package], error) {
	var of db.Where // conditions on the projects
	of.And(cond, args...)
	if f.Status == "" {
		f.Status = Default
	}
	w := f.matching(of)
	if f.Name != "" {
		w.Text("packages", f.Name, "k.name")
	}
	q := db.Query[*Package]{
		Columns: listedColumns + ", p.full_path", From: packageTables, Where: w,
		Order: orders[f.OrderBy], Desc: f.Desc, Scan: scanListed,
	}
	among, err := f.candidates(ctx, d, projectID, of)
	if err != nil {
		return db.Page[*Package]{}, err
	}
	q.Among = among
	if projectID == 0 {
		q.First = first{f: f, of: of}.find
	}
	return db.List(ctx, d, q, pg)
}

const packageTables = "packages k JOIN projects p ON p.id = k.project_id"

const (
	// listWindow is the number of packages of the instance, at the start of a list of a
	// group, that are examined one by one before the projects of the group are.
	listWindow = 600
	// maxFirst is the highest row number up to which pages of a group are read project by
	// project. For later pages all packages of the group are sorted.
	maxFirst = 200
	// maxListed is the number of candidates up to which they are sorted. With more, reading in
	// the order of the list soon finds a page.
	maxListed = 100
	// maxProjects is the number of projects of a group up to which candidates are searched.
	maxProjects = 50
)

// first finds the first packages of the list of a group.
type first struct {
	f  Filter
	of db.Where // the projects p
}

// find returns IDs that include those of the first rows of the list; nil if they cannot be
// found faster than by the list itself.
func (l first) find(ctx context.Context, d *db.DB, rows int) ([]int64, error) {
	if l.f.OrderBy == "" || l.f.OrderBy == "created_at" {
		window := db.Window{Table: "packages k", Key: "k.id", Order: []string{"k.created_at", "k.id"}, Desc: l.f.Desc, Size: listWindow}
		// PostgreSQL reads the index of the order, also for a rare type or version.
		if found, err := window.Find(ctx, d, packageTables, l.where(l.of), rows); err != nil || found != nil || d.Postgres() {
			return found, err
		}
	}
	// No index has the packages of a project with a name in their order.
	if rows > maxFirst || l.f.Name != "" {
		return nil, nil
	}
	return db.Parents{
		From: "projects p", Where: l.of, ID: "p.id", Rows: "packages k", Match: l.where(db.Where{}), Key: "k.id", Parent: "k.project_id",
		Order: l.order(), Inside: l.inProject(), Desc: l.f.Desc,
	}.Find(ctx, d, rows)
}

// order are the columns of the order.
func (l first) order() []string {
	var list []string
	for _, o := range orders[l.f.OrderBy] {
		list = append(list, o.Name)
	}
	return list
}

// inProject are the columns of the order among packages of one project, which have the same
// path.
func (l first) inProject() []string {
	return slices.DeleteFunc(l.order(), func(name string) bool { return name == "p.full_path" })
}

// where returns conditions with those of the filter.
func (l first) where(of db.Where) db.Where {
	w := l.f.matching(of)
	if l.f.Name != "" {
		w.Contains(l.f.Name, "k.name")
	}
	return w
}

// matching returns conditions with those of the filter except that on the name.
func (f Filter) matching(of db.Where) db.Where {
	w := of.With("k.status = ?", string(f.Status))
	f.whereKind(w)
	return *w
}

// whereKind adds the conditions that an index has for each project.
func (f Filter) whereKind(w *db.Where) {
	if f.Type != "" {
		w.And("k.type = ?", string(f.Type))
	}
	if f.Version != "" {
		w.And("k.version = ?", f.Version)
	}
}

// candidates returns the packages of a project or, on SQLite, of the projects p of a group, with
// the type and version of the filter; nil if there are many or the filter has neither.
func (f Filter) candidates(ctx context.Context, d *db.DB, projectID int64, of db.Where) ([]int64, error) {
	if f.Type == "" && f.Version == "" || projectID == 0 && d.Postgres() {
		return nil, nil
	}
	projects := []int64{projectID}
	if projectID == 0 {
		// The subquery reads an index of each project.
		var in db.Where
		in.And(`k.project_id = p.id`)
		f.whereKind(&in)
		var err error
		projects, err = db.All(ctx, d, db.Value[int64], `
			SELECT p.id FROM projects p`+of.SQL()+` AND (SELECT k.id FROM packages k`+in.SQL()+` LIMIT 1) IS NOT NULL LIMIT ?`,
			of.Args(in.Args(maxProjects+1)...)...)
		if err != nil || len(projects) > maxProjects {
			return nil, err
		}
	}
	var w db.Where
	w.And(`k.project_id IN `+db.In(len(projects)), db.Any(projects)...)
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
