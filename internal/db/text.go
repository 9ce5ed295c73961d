package db

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// maxTerms is the maximum number of words and phrases of a search; the last one
	// contains the rest.
	maxTerms = 16
	// trigram is the number of characters of an entry of a text index. The index does not
	// find shorter terms.
	trigram = 3
	// MaxCandidates is the maximum number of rows that a list reads out of its order. With
	// more matches it is read in its order, in which it soon finds a page.
	MaxCandidates = 1000
	// fewCandidates is the number of matches up to which they are read without looking at
	// the first rows of the list.
	fewCandidates = 200
)

// folded returns the expression for the text of a column that is searched. Of a
// description or a comment these are the first 65,536 characters, as in the text indexes
// (migration 0055): a row may have a megabyte, and indexing all of it takes a tenth of a
// second.
func folded(column string) string {
	if strings.HasSuffix(column, "description") || strings.HasSuffix(column, "body") {
		column = `substr(` + column + `, 1, 65536)`
	}
	return `fold(` + column + `)`
}

// Terms splits a search into words and phrases in double quotes. A match contains
// all of them, in any order.
func Terms(search string) []string {
	var terms []string
	rest := strings.TrimSpace(search)
	for rest != "" {
		if len(terms) == maxTerms-1 {
			return append(terms, rest)
		}
		var term string
		if body, ok := strings.CutPrefix(rest, `"`); ok && strings.Contains(body, `"`) {
			term, rest, _ = strings.Cut(body, `"`)
		} else if i := strings.IndexFunc(rest, isSpace); i >= 0 {
			term, rest = rest[:i], rest[i:]
		} else {
			term, rest = rest, ""
		}
		if term = strings.TrimSpace(term); term != "" && !slices.Contains(terms, term) {
			terms = append(terms, term)
		}
		rest = strings.TrimSpace(rest)
	}
	return terms
}

func isSpace(r rune) bool { return r == ' ' || r == '\t' || r == '\n' || r == '\r' }

// textSearch is a search in the text index of a table.
type textSearch struct {
	table, search string
	columns       []string
}

// Text is Contains for columns of the text index of a table. A List, whose last Order column
// must be the ID of that table, starts with the rows that the index finds if they are few.
// Columns must be prefixed with the alias of the table.
func (w *Where) Text(table, search string, columns ...string) {
	w.Contains(search, columns...)
	t := &textSearch{table: table, search: search}
	for _, column := range columns {
		_, name, _ := strings.Cut(column, ".")
		t.columns = append(t.columns, name)
	}
	w.text = t
}

// indexed reports whether the text index finds a term.
func indexed(term string) bool { return utf8.RuneCountInString(term) >= trigram }

// candidates returns IDs in order; nil if there are more than MaxCandidates.
func candidates(ids []int64) []int64 {
	slices.Sort(ids)
	if ids = slices.Compact(ids); len(ids) > MaxCandidates {
		return nil
	}
	return append([]int64{}, ids...)
}

// Contains adds the condition that each term of a search is in one of the columns.
func (w *Where) Contains(search string, columns ...string) {
	cond, args := Contains(search, columns...)
	w.And(cond, args...)
}

// Contains returns the condition that each term of a search is in one of the columns.
func Contains(search string, columns ...string) (cond string, args []any) {
	return containTerms(Terms(search), columns)
}

func containTerms(terms, columns []string) (cond string, args []any) {
	var all []string
	for _, term := range terms {
		var any []string
		for _, column := range columns {
			any, args = append(any, folded(column)+` LIKE ? ESCAPE '\'`), append(args, Like(term))
		}
		all = append(all, `(`+strings.Join(any, ` OR `)+`)`)
	}
	if len(all) == 0 { // only empty quotes
		return `1 = 0`, nil
	}
	return strings.Join(all, ` AND `), args
}

// WithText returns the IDs of the rows of a table that a search can find in columns of its
// text index, in order: those that contain all terms of at least three characters. It is nil
// if there are more than MaxCandidates, or if all terms are shorter. Lists must check the
// condition of Contains as well.
//
// The search of a request has the limits of a list: see List.
func (d *DB) WithText(ctx context.Context, table, search string, columns ...string) (ids []int64, err error) {
	terms := slices.DeleteFunc(Terms(search), func(term string) bool { return !indexed(term) })
	if searchable, err := d.searchable(ctx); len(terms) == 0 || err != nil || !searchable {
		return nil, err
	}
	few := true
	err = d.limited(ctx, true, func(ctx context.Context) (err error) {
		if d.kind == postgresKind {
			cond, args := containTerms(terms, columns)
			ids, err = d.withTrigrams(ctx, table, cond, args)
			return err
		}
		ids, few, err = d.Few(ctx, `SELECT rowid FROM `+table+`_text WHERE `+table+`_text MATCH ?`, []any{match(terms, columns)}, MaxCandidates)
		return err
	})
	if err != nil || !few {
		return nil, err
	}
	return candidates(ids), nil
}

// match returns the FTS5 query for rows that have each term in one of the columns.
func match(terms, columns []string) string {
	quoted := make([]string, len(terms))
	for i, term := range terms {
		quoted[i] = `"` + strings.ReplaceAll(term, `"`, `""`) + `"`
	}
	return `{` + strings.Join(columns, ` `) + `} : (` + strings.Join(quoted, ` AND `) + `)`
}

// withTrigrams reads from the trigram indexes of PostgreSQL. The planner overestimates the
// number of matches and therefore prefers a table scan with a limit, so the transaction
// disables such scans.
func (d *DB) withTrigrams(ctx context.Context, table, cond string, args []any) (ids []int64, err error) {
	tx, err := d.writer.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, because(ctx, err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, `SET LOCAL enable_seqscan = off`); err != nil {
		return nil, because(ctx, err)
	}
	ids, err = column[int64](ctx, tx, rebind(`SELECT id FROM `+table+` WHERE `+cond+` LIMIT ?`), append(args, MaxCandidates+1)...)
	return ids, because(ctx, err)
}

// searchable reports whether the database has text indexes: PostgreSQL has them if the
// extension pg_trgm could be created.
func (d *DB) searchable(ctx context.Context) (bool, error) {
	if d.kind != postgresKind {
		return true, nil
	}
	if has := d.hasTrigrams.Load(); has != nil {
		return *has, nil
	}
	var has bool
	err := d.QueryRowContext(ctx, `SELECT to_regclass('issues_text') IS NOT NULL`).Scan(&has)
	if err != nil {
		return false, err
	}
	d.hasTrigrams.Store(&has)
	return has, nil
}
