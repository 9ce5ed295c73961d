package db

import (
	"encoding/json"
	"strings"
)

// Among returns tables and joins that are read from a list of values of a key of the
// first table, with the argument of the list.
func (d *DB) Among(tables, key string, ids []int64) (from string, args []any) {
	list, err := json.Marshal(ids)
	if err != nil || ids == nil { // numbers always have a text
		list = []byte("[]")
	}
	query := `SELECT value AS id FROM json_each(?)`
	if d.kind == postgresKind {
		query = `SELECT CAST(e.value AS BIGINT) AS id FROM json_array_elements_text(CAST(? AS json)) AS e (value)`
	}
	return d.Behind(query, tables, key), []any{string(list)}
}

// Behind returns tables and joins that are read from a query, whose column id has
// values of a key of the first table.
func (d *DB) Behind(query, tables, key string) string {
	return d.Joined(`(`+query+`) AS among`, tables, key+` = among.id`)
}

// Joined returns tables and joins that are read from another table, with the condition
// of the join.
//
// SQLite's planner does not know how few rows a part of the query has, but takes the
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

// inOrder turns joins into those that SQLite takes in their order.
var inOrder = strings.NewReplacer(" LEFT JOIN ", " LEFT JOIN ", " JOIN ", " CROSS JOIN ")

// from returns the tables of the list, read from candidates if these are not nil.
func (q Query[T]) from(d *DB, tables string, among []int64) (string, []any) {
	if among == nil {
		return tables, nil
	}
	return d.Among(tables, q.key(), among)
}

// key is the last column of the order.
func (q Query[T]) key() string { return q.Order[len(q.Order)-1].Name }
