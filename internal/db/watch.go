package db

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// watch is a callback for writes to some tables.
type watch struct {
	tables []string
	f      func(ctx context.Context, tx *Tx) error
}

// OnWrite registers a function that is called at the end of each transaction that wrote to
// one of the tables, before the commit. Caches use it to publish that their rows have
// changed, whichever code wrote them. Rows deleted by a foreign key count as a write to the
// referenced table. It is called at startup.
func (d *DB) OnWrite(tables []string, f func(ctx context.Context, tx *Tx) error) {
	d.watches = append(d.watches, watch{tables, f})
}

// watched reports whether a watch has the table that the statement writes.
func (d *DB) watched(query string) bool {
	table := written(query)
	return table != "" && slices.ContainsFunc(d.watches, func(w watch) bool { return slices.Contains(w.tables, table) })
}

// note records the table that a statement of the transaction wrote to.
func (t *Tx) note(query string) {
	if len(t.db.watches) == 0 {
		return
	}
	if table := written(query); table != "" && !slices.Contains(t.wrote, table) {
		t.wrote = append(t.wrote, table)
	}
}

// callWatches calls the watches of the tables that the transaction wrote to.
func (t *Tx) callWatches(ctx context.Context) error {
	for _, w := range t.db.watches {
		if !slices.ContainsFunc(t.wrote, func(table string) bool { return slices.Contains(w.tables, table) }) {
			continue
		}
		if err := w.f(ctx, t); err != nil {
			return fmt.Errorf("after write: %w", err)
		}
	}
	return nil
}

// written returns the table that a statement writes to; empty if it only reads. It relies
// on our SQL style: keywords in upper case, separated by one space.
func written(query string) string {
	query = strings.TrimLeft(query, " \t\n")
	if strings.HasPrefix(query, "SELECT ") {
		return ""
	}
	for _, verb := range []string{"INSERT INTO ", "UPDATE ", "DELETE FROM "} {
		at := 0
		if !strings.HasPrefix(query, verb) {
			if !strings.HasPrefix(query, "WITH ") {
				continue
			}
			if at = strings.Index(query, verb); at < 0 {
				continue
			}
		}
		name := query[at+len(verb):]
		if end := strings.IndexAny(name, " \t\n("); end >= 0 {
			name = name[:end]
		}
		return name
	}
	return ""
}
