package db

import (
	"context"
	"slices"
)

// Parents finds the first rows of a list that has the rows of many parents, such as the
// packages in the projects of a group, if an index has the order of the list within each
// parent. The effort grows with the number of parents, but not with that of rows.
type Parents struct {
	From   string // the table of the parents with its alias
	Where  Where  // conditions on the parents
	ID     string // the key of a parent
	Rows   string // the table of the rows with its alias
	Match  Where  // conditions on the rows
	Key    string // the key of a row
	Parent string // the column of a row that refers to its parent
	Order  []string
	Inside []string // the order within a parent
	Desc   bool
}

// maxParents is the number of parents up to which they are examined one by one.
const maxParents = 50_000

// Find returns keys that include those of the first rows of the list; nil if there are too
// many parents.
func (v Parents) Find(ctx context.Context, d *DB, rows int) ([]int64, error) {
	parents, err := v.first(ctx, d, rows)
	if err != nil || parents == nil {
		return nil, err
	}
	all := []int64{}
	for i, id := range parents {
		w := v.within(d, `?`, id)
		// The first rows of the parents before it precede all of its own.
		found, err := All(ctx, d, Value[int64], `SELECT `+v.Key+` FROM `+v.Rows+w.SQL()+v.inside()+` LIMIT ?`, w.Args(rows-i)...)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// first returns the parents that can have one of the first rows of the list, in the order of
// the first row of each.
func (v Parents) first(ctx context.Context, d *DB, rows int) ([]int64, error) {
	w := v.within(d, v.ID)
	one := `SELECT ` + v.Key + ` FROM ` + v.Rows + w.SQL() + v.inside() + ` LIMIT 1`
	firsts, err := All(ctx, d, Value[int64], `SELECT COALESCE((`+one+`), 0) FROM `+v.From+v.Where.SQL()+` LIMIT ?`, append(w.Args(v.Where.Args()...), maxParents+1)...)
	if err != nil || len(firsts) > maxParents {
		return nil, err
	}
	firsts = slices.DeleteFunc(firsts, func(id int64) bool { return id == 0 })
	from, args := d.Among(v.Rows+` JOIN `+v.From+` ON `+v.ID+` = `+v.Parent, v.Key, firsts)
	found, err := All(ctx, d, Value[int64], `SELECT `+v.ID+` FROM `+from+OrderBy(v.Order, v.Desc)+` LIMIT ?`, append(args, rows)...)
	return append([]int64{}, found...), err // not nil: no parent has one
}

// within returns the conditions on rows of one parent, given by its ID.
func (v Parents) within(d *DB, id string, args ...any) Where {
	var w Where
	cond, all := d.Within(v.Parent, id, args...)
	w.And(cond, all...)
	w.And(v.Match.Cond(), v.Match.Args()...)
	return w
}

func (v Parents) inside() string { return OrderBy(append([]string{v.Parent}, v.Inside...), v.Desc) }
