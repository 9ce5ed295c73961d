package db

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"svc/internal/memo"
)

// Among returns tables and joins that are read starting with a list of values of a key of
// the first table, and the argument for the list.
func (d *DB) Among(tables, key string, ids []int64) (from string, args []any) {
	query, arg := d.values(ids)
	return d.Behind(query, tables, key), []any{arg}
}

// OneOf returns the condition that a column has one of many values. With a placeholder for
// each, a statement can have at most 32,766.
func (d *DB) OneOf(column string, ids []int64) (cond string, args []any) {
	query, arg := d.values(ids)
	return column + ` IN (` + query + `)`, []any{arg}
}

// values returns a query whose column id has the values of a list, and its argument.
func (d *DB) values(ids []int64) (query string, arg any) {
	list, err := json.Marshal(ids)
	if err != nil || ids == nil { // integers can always be encoded
		list = []byte("[]")
	}
	if d.kind == postgresKind {
		return `SELECT CAST(e.value AS BIGINT) AS id FROM json_array_elements_text(CAST(? AS json)) AS e (value)`, string(list)
	}
	return `SELECT value AS id FROM json_each(?)`, string(list)
}

// Behind returns tables and joins that are read starting with a query, whose column id has
// values of a key of the first table.
func (d *DB) Behind(query, tables, key string) string {
	return d.Joined(`(`+query+`) AS among`, tables, key+` = among.id`)
}

// Joined returns tables and joins that are read after another table, with the condition
// of the join.
//
// SQLite's planner does not know how few rows a part of the query has, but it reads the
// tables of a CROSS JOIN in their order.
func (d *DB) Joined(with, tables, on string) string {
	first, rest := tables, ""
	if at := strings.Index(tables, " JOIN "); at >= 0 {
		if left := strings.Index(tables, " LEFT JOIN "); left >= 0 {
			at = min(at, left)
		}
		first, rest = tables[:at], tables[at:]
	}
	if d.kind == postgresKind {
		return with + ` JOIN ` + first + ` ON ` + on + rest
	}
	return with + ` CROSS JOIN ` + first + ` ON ` + on + inOrder.Replace(rest)
}

// Within returns the condition that a column has a value, which may have arguments, for a
// query that sorts by this column and then by others of an index. PostgreSQL drops columns
// that are equal to a constant from the order, and might then scan an index of the others,
// because it expects to find enough rows early. It gets a range of one value instead.
func (d *DB) Within(column, value string, args ...any) (cond string, all []any) {
	if d.kind == postgresKind {
		return column + ` >= ` + value + ` AND ` + column + ` <= ` + value, append(slices.Clip(args), args...)
	}
	return column + ` = ` + value, args
}

// inOrder converts joins to joins that SQLite reads in order.
var inOrder = strings.NewReplacer(" LEFT JOIN ", " LEFT JOIN ", " JOIN ", " CROSS JOIN ")

// Window is a number of rows at the start of a list. If matches are common, a page of them is
// found there; the query planner may prefer to collect all matches instead.
type Window struct {
	Table string   // with the alias that the list uses
	Where Where    // conditions that belong to the order, e.g. on the project
	Key   string   // the column with the unique key of a row
	Order []string // the columns of the list
	Desc  bool
	Size  int // number of rows to search
}

// Find returns the keys of the first rows of tables that match a condition; nil if the window
// does not have enough of them. The search ends with the last row that is needed.
func (v Window) Find(ctx context.Context, d *DB, tables string, w Where, rows int) ([]int64, error) {
	if 4*rows > v.Size {
		return nil, nil
	}
	var query string
	switch d.kind {
	case sqliteKind:
		// SQLite reads the joined tables in their order, so the rows are already in the order
		// of the window. With ORDER BY, it would read the whole window.
		query = `SELECT ` + v.Key + ` FROM ` + d.Behind(`SELECT `+v.Key+` AS id FROM `+v.Table+v.Where.SQL()+v.sorted(v.Order)+` LIMIT ?`, tables, v.Key) + w.SQL() + ` LIMIT ?`
	case postgresKind:
		// PostgreSQL must examine the rows of the window one by one. If it could choose another
		// join, it would, for example, read all rows with a common label to compare them with
		// those of the window.
		columns, names := v.Key+` AS id`, make([]string, len(v.Order))
		for i, name := range v.Order {
			names[i] = `o` + strconv.Itoa(i)
			columns += `, ` + name + ` AS ` + names[i]
		}
		query = `SELECT among.id FROM (SELECT ` + columns + ` FROM ` + v.Table + v.Where.SQL() + v.sorted(v.Order) + ` LIMIT ?) AS among
			CROSS JOIN LATERAL (SELECT 1 FROM ` + tables + ` WHERE ` + v.Key + ` = among.id AND ` + w.Cond() + ` LIMIT 1) AS found` + v.sorted(names) + ` LIMIT ?`
	}
	var on Q = d
	if len(v.Where.args) == 0 && !w.search() { // else the number of rows of a project, for example, matters
		on = d.planned()
	}
	found, err := All(ctx, on, Value[int64], query, v.Where.Args(append([]any{v.Size}, w.Args(rows)...)...)...)
	if err != nil || len(found) == rows {
		return found, err
	}
	return nil, nil
}

// Keys returns the keys of all rows in the window, in order, from an index.
func (v Window) Keys(ctx context.Context, d *DB) ([]int64, error) {
	return All(ctx, d, Value[int64], `SELECT `+v.Key+` FROM `+v.Table+v.Where.SQL()+v.sorted(v.Order)+` LIMIT ?`, v.Where.Args(v.Size)...)
}

func (v Window) sorted(columns []string) string { return OrderBy(columns, v.Desc) }

// OrderBy returns the ORDER BY of columns in one direction.
func OrderBy(columns []string, desc bool) string {
	direction := ""
	if desc {
		direction = " DESC"
	}
	return " ORDER BY " + strings.Join(columns, direction+", ") + direction
}

// first returns the keys of the first rows of the list if they can be found faster than by
// the list itself: by First, or in the window of its order for a text search.
func (q Query[T]) first(ctx context.Context, d *DB, p Paging) ([]int64, error) {
	rows := p.Offset + p.Limit + 1
	switch {
	case p.Keyset:
		return nil, nil
	case q.First != nil:
		return q.First(ctx, d, rows)
	case q.Where.text == nil:
		return nil, nil
	}
	tables := cmp.Or(q.CountFrom, q.From)
	table, _, _ := strings.Cut(strings.Split(tables, " LEFT JOIN ")[0], " JOIN ")
	_, alias, _ := strings.Cut(table, " ")
	window := Window{Table: table, Key: q.key(), Desc: q.Desc, Size: 600}
	for _, o := range q.Order {
		if !strings.HasPrefix(o.Name, alias+".") {
			return nil, nil
		}
		window.Order = append(window.Order, o.Name)
	}
	return window.Find(ctx, d, tables, q.Where, rows)
}

// from returns the tables of the list. If among is not nil, they are read from these
// candidates.
func (q Query[T]) from(d *DB, tables string, among []int64) (string, []any) {
	if among == nil {
		return tables, nil
	}
	return d.Among(tables, q.key(), among)
}

// Few returns the IDs that a query selects if there are at most most of them. Otherwise few
// is false, which is cached for some seconds, because it only decides how a list is read.
// Within a page, a query is run once.
func (d *DB) Few(ctx context.Context, query string, args []any, most int) (ids []int64, few bool, err error) {
	key, known := countKey(query, args)
	name := fewKey{key, most}
	if known && d.counts.over(name.text()) {
		return nil, false, nil
	}
	read := func() ([]int64, error) {
		return All(ctx, d, Value[int64], query+` LIMIT ?`, append(slices.Clip(args), most+1)...)
	}
	if known {
		ids, err = memo.Get(ctx, name, read)
	} else {
		ids, err = read()
	}
	if err != nil || len(ids) <= most {
		return slices.Clone(ids), true, err
	}
	if known {
		d.counts.remember(name.text())
	}
	return nil, false, nil
}

// fewKey is the key of a query with a limit.
type fewKey struct {
	query string
	most  int
}

func (k fewKey) text() string { return strconv.Itoa(k.most) + ` of ` + k.query }

// key is the last column of the order.
func (q Query[T]) key() string { return q.Order[len(q.Order)-1].Name }
