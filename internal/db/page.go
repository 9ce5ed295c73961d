package db

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"svc/internal/errs"
)

// Paging selects one page of a list.
type Paging struct {
	Limit  int
	Offset int
	// Keyset pages by the values of the last row instead of an offset. After has these
	// values, in the order of the columns of the list; nil for the first page.
	Keyset bool
	After  []any
	// Totals requests the number of rows, up to CountLimit.
	Totals bool
}

// Page is one page of a list.
type Page[T any] struct {
	Items []T
	More  bool  // rows follow this page
	Last  []any // the sort values of the last item, if Keyset was set
	Total int   // valid if Totals was set and Over is false
	Over  bool  // there are more rows than CountLimit
}

// Order is a column that a list is sorted by.
type Order struct {
	Name string // as SQL names it, e.g. u.name
	Text bool   // the column is text, otherwise an integer
}

// SlicePage returns a page of a list in memory, by offset.
func SlicePage[T any](all []T, p Paging) Page[T] {
	page := Page[T]{Total: len(all), Over: len(all) > CountLimit}
	all = all[min(p.Offset, len(all)):]
	page.Items, page.More = all[:min(p.Limit, len(all))], len(all) > p.Limit
	return page
}

// Pick is SlicePage for a list of keys; read returns the item of a key.
func Pick[K, T any](keys []K, p Paging, read func(K) (T, error)) (Page[T], error) {
	picked := SlicePage(keys, p)
	page := Page[T]{Items: make([]T, 0, len(picked.Items)), More: picked.More, Total: picked.Total, Over: picked.Over}
	for _, key := range picked.Items {
		item, err := read(key)
		if err != nil {
			return page, err
		}
		page.Items = append(page.Items, item)
	}
	return page, nil
}

// Query is a list whose filters and order vary.
type Query[T any] struct {
	Columns string
	// ColumnArgs are the arguments of placeholders in Columns and then in
	// From; a From that has any needs a CountFrom.
	ColumnArgs []any
	From       string // tables and joins
	Where      Where
	Order      []Order // the last one is unique; all go in the same direction
	Desc       bool
	Scan       func(Scanner) (T, error)
	// Keys returns the values of the Order columns of an item.
	Keys func(T) []any
	// CountFrom replaces From for counting and skipping rows, if the joins of From do not
	// change the number of rows.
	CountFrom string
	// CountWhere, if it has conditions, replaces Where for counting and skipping rows that
	// are not read from candidates. It must be equivalent, but may allow the use of an
	// index.
	CountWhere Where
	// Among, if it is not nil, contains all values of the last Order column that rows can
	// have. A list with few candidates then reads only those instead of all rows in its
	// order.
	Among []int64
	// Behind, if it is not nil, returns a query of values of the last Order column, without
	// duplicates, from which the rows are counted if Among is nil. An empty query means that the
	// rows are counted in any order.
	Behind func(ctx context.Context, d *DB) (query string, args []any, err error)
	// First, if it is not nil, returns values of the last Order column that include
	// those of the first rows of the list. It returns nil if it cannot find them
	// faster than the list itself.
	First func(ctx context.Context, d *DB, rows int) ([]int64, error)
}

// List runs the query for one page. Invalid for a cursor that does not match the
// order. Unavailable if the list of a request takes too long, or a search finds no
// free connection: see ReadLimits.
func List[T any](ctx context.Context, d *DB, q Query[T], p Paging) (Page[T], error) {
	var page Page[T]
	if t := q.Where.text; t != nil && q.Among == nil {
		found, err := d.WithText(ctx, t.table, t.search, t.columns...)
		if err != nil {
			return page, err
		}
		q.Among = found
	}
	err := d.limited(ctx, q.search(p), func(ctx context.Context) (err error) {
		page, err = q.list(ctx, d, p)
		return err
	})
	return page, err
}

func (q Query[T]) list(ctx context.Context, d *DB, p Paging) (Page[T], error) {
	var page Page[T]
	if q.Among != nil && len(q.Among) == 0 {
		page.Items = []T{}
		return page, nil
	}
	dir, cmp := "", ">"
	if q.Desc {
		dir, cmp = " DESC", "<"
	}
	where := Where{conds: slices.Clip(q.Where.conds), args: slices.Clip(q.Where.args)}
	if p.Keyset && p.After != nil {
		if err := q.checkCursor(p.After); err != nil {
			return page, err
		}
		names := make([]string, len(q.Order))
		for i, o := range q.Order {
			names[i] = o.Name
		}
		// A row value is compared as a whole, for which an index on the same columns can be
		// used.
		where.And("("+strings.Join(names, ", ")+") "+cmp+" "+In(len(names)), p.After...)
	}
	countFrom, countWhere := q.CountFrom, q.CountWhere
	if countFrom == "" {
		countFrom = q.From
	}
	if len(countWhere.conds) == 0 {
		countWhere = q.Where
	}
	var columns []string
	for _, o := range q.Order {
		columns = append(columns, o.Name+dir)
	}
	order := " ORDER BY " + strings.Join(columns, ", ")
	among := q.Among
	if among == nil || len(among) > fewCandidates && (q.Where.text != nil || q.First != nil) {
		found, err := q.first(ctx, d, p)
		if err != nil {
			return page, err
		}
		if found != nil {
			among = found
		}
	}
	passWhere := countWhere
	if among != nil {
		passWhere = q.Where
	}
	if q.Among != nil {
		countWhere = q.Where
	}
	passFrom, passArgs := q.from(d, countFrom, among)
	countFrom, countArgs := q.from(d, countFrom, q.Among)
	from, fromArgs := q.from(d, q.From, among)
	if p.Offset > 0 || !p.Keyset && len(among) > 2*p.Limit {
		// Rows before the page are skipped in an index, if there is a covering one, and
		// candidates are sorted by their keys; only the rows of the page are read
		// completely.
		key := q.key()
		where = Where{}
		in := "%s IN (%s)"
		if d.kind == postgresKind {
			// The array is computed once. For a table that was just filled, PostgreSQL may
			// expect few rows and run a query after IN for every row.
			in = "%s = ANY (ARRAY(%s))"
		}
		where.And(fmt.Sprintf(in, key, "SELECT "+key+" FROM "+passFrom+passWhere.SQL()+order+" LIMIT ? OFFSET ?"),
			append(slices.Clone(passArgs), passWhere.Args(p.Limit+1, p.Offset)...)...)
		from, fromArgs = q.From, nil
	}
	// One more row shows whether there is another page.
	query := "SELECT " + q.Columns + " FROM " + from + where.SQL() + order + " LIMIT ?"
	inColumns := strings.Count(q.Columns, "?")
	if len(fromArgs) == 0 {
		inColumns = len(q.ColumnArgs)
	}
	args := append(slices.Concat(q.ColumnArgs[:inColumns], fromArgs, q.ColumnArgs[inColumns:]), where.Args(p.Limit+1)...)
	var on Q = d
	if among != nil && len(among) <= fewCandidates {
		on = d.planned()
	}
	items, err := All(ctx, on, q.Scan, query, args...)
	if err != nil {
		return page, err
	}
	if len(items) > p.Limit {
		items, page.More = items[:p.Limit], true
	}
	page.Items = items
	if p.Keyset && len(items) > 0 {
		page.Last = q.Keys(items[len(items)-1])
	}
	if !p.Totals {
		return page, nil
	}
	if !page.More && (len(items) > 0 || p.Offset == 0) {
		// The end is in sight: no need to count.
		page.Total = p.Offset + len(items)
		page.Over = page.Total > CountLimit
		return page, nil
	}
	if q.Among == nil && q.Behind != nil {
		behind, args, err := q.Behind(ctx, d)
		if err != nil {
			return page, err
		}
		if behind != "" {
			countFrom, countArgs, countWhere = d.Behind(behind, countFrom, q.key()), args, q.Where
		}
	}
	page.Total, page.Over, err = d.total(ctx, countFrom+countWhere.SQL(), slices.Concat(countArgs, countWhere.args)...)
	return page, err
}

func (q Query[T]) checkCursor(after []any) error {
	if len(after) != len(q.Order) {
		return errs.Invalid("cursor is invalid")
	}
	for i, o := range q.Order {
		_, isText := after[i].(string)
		_, isInt := after[i].(int64)
		if o.Text != isText || !o.Text && !isInt {
			return errs.Invalid("cursor is invalid").Because(fmt.Errorf("value %d of the cursor has the wrong type", i))
		}
	}
	return nil
}
