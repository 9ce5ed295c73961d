package db

import (
	"encoding/json"
	"strings"
)

// Among returns tables and joins that are read from a list of values of a key of the
// first table, with the argument of the list.
//
// SQLite's planner does not know how short the list is, but takes the tables of a
// CROSS JOIN in their order.
func (d *DB) Among(tables, key string, ids []int64) (from string, args []any) {
	list, err := json.Marshal(ids)
	if err != nil || ids == nil { // numbers always have a text
		list = []byte("[]")
	}
	first, rest := tables, ""
	if at := strings.Index(tables, " JOIN "); at >= 0 {
		if left := strings.Index(tables, " LEFT JOIN "); left >= 0 {
			at = min(at, left)
		}
		first, rest = tables[:at], tables[at:]
	}
	args = []any{string(list)}
	if d.kind == postgresKind {
		return `(SELECT CAST(e.value AS BIGINT) AS id FROM json_array_elements_text(CAST(? AS json)) AS e (value)) AS among JOIN ` +
			first + ` ON ` + key + ` = among.id` + rest, args
	}
	return `json_each(?) AS among CROSS JOIN ` + first + ` ON ` + key + ` = among.value` + inOrder.Replace(rest), args
}

// inOrder turns joins into those that SQLite takes in their order.
var inOrder = strings.NewReplacer(" LEFT JOIN ", " LEFT JOIN ", " JOIN ", " CROSS JOIN ")

// from returns the tables of the list, read from its candidates if it has any.
func (q Query[T]) from(d *DB, tables string) (string, []any) {
	if q.Among == nil {
		return tables, nil
	}
	return d.Among(tables, q.Order[len(q.Order)-1].Name, q.Among)
}
