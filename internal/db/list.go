package db

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"svc/internal/lru"
)

// CountLimit is the limit up to which rows are counted. A list with more rows has
// no total.
const CountLimit = 10_000

// Where collects the conditions of a list query whose filters vary. Fixed
// queries are written out instead.
type Where struct {
	conds []string
	args  []any
	text  *textSearch // nil without one
}

// And adds a condition, with ? for its arguments.
func (w *Where) And(cond string, args ...any) {
	w.conds = append(w.conds, cond)
	w.args = append(w.args, args...)
}

// With returns a copy with one more condition.
func (w *Where) With(cond string, args ...any) *Where {
	more := &Where{conds: slices.Clip(w.conds), args: slices.Clip(w.args), text: w.text}
	more.And(cond, args...)
	return more
}

// Without returns a copy without one of the conditions that have no arguments.
func (w *Where) Without(cond string) Where {
	conds := slices.DeleteFunc(slices.Clone(w.conds), func(c string) bool { return c == cond })
	return Where{conds: conds, args: slices.Clip(w.args), text: w.text}
}

// Time adds a condition on a time, unless that is nil.
func (w *Where) Time(cond string, at *time.Time) {
	if at != nil {
		w.And(cond, *at)
	}
}

// SQL returns the WHERE clause; empty without conditions.
func (w *Where) SQL() string {
	if len(w.conds) == 0 {
		return ""
	}
	return " WHERE (" + strings.Join(w.conds, ") AND (") + ")"
}

// Cond returns all conditions as one expression; TRUE without conditions.
func (w *Where) Cond() string {
	if len(w.conds) == 0 {
		return "1 = 1"
	}
	return "(" + strings.Join(w.conds, ") AND (") + ")"
}

// Args returns the arguments of the clause followed by more.
func (w *Where) Args(more ...any) []any {
	return append(append(make([]any, 0, len(w.args)+len(more)), w.args...), more...)
}

// In returns a list of n placeholders for IN. With n = 0 the list matches nothing. Do not
// use that for NOT IN: a comparison with NULL is never true.
func In(n int) string {
	if n == 0 {
		return "(NULL)"
	}
	return "(?" + strings.Repeat(", ?", n-1) + ")"
}

// Values returns n rows with a placeholder for VALUES, whose column is column1. n is at
// least 1.
func Values(n int) string {
	return "(?)" + strings.Repeat(", (?)", n-1)
}

// Any converts a slice to arguments.
func Any[T any](list []T) []any {
	args := make([]any, len(list))
	for i, v := range list {
		args[i] = v
	}
	return args
}

// Like returns a pattern for LIKE … ESCAPE '\' that finds the folded text anywhere.
func Like(text string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(strings.ToLower(text)) + "%"
}

// Total counts the rows of a list up to CountLimit. If there are more, over is true, and
// total is meaningless. from is the part of the query after FROM.
//
// That a list is over the limit is cached for some seconds, so that paging through a long
// list does not count 10,000 rows for each page. Other totals are always current: they are
// counted again after each write.
//
// The totals of requests have the limits of a list: see List.
func (d *DB) Total(ctx context.Context, from string, args ...any) (total int, over bool, err error) {
	err = d.limited(ctx, strings.Contains(from, searches), func(ctx context.Context) (err error) {
		total, over, err = d.total(ctx, from, args...)
		return err
	})
	return total, over, err
}

func (d *DB) total(ctx context.Context, from string, args ...any) (total int, over bool, err error) {
	key, known := countKey(from, args)
	if known && d.counts.over(key) {
		return 0, true, nil
	}
	query := "SELECT count(*) FROM (SELECT 1 FROM " + from + fmt.Sprintf(" LIMIT %d) AS counted", CountLimit+1)
	switch {
	case !known:
		err = d.QueryRowContext(ctx, query, args...).Scan(&total)
	case d.reader != nil:
		err = retryBusy(ctx, func() (err error) {
			total, err = d.reader.count(ctx, key, query, args)
			return err
		})
	default:
		total, err = d.countSnapshot(ctx, key, query, args)
	}
	if err != nil {
		return 0, false, err
	}
	if total > CountLimit {
		if known {
			d.counts.remember(key)
		}
		return 0, true, nil
	}
	return total, false, nil
}

// countKey returns a unique key of a list: each part is prefixed with its length.
// It returns false for an argument that only the driver can convert.
func countKey(from string, args []any) (string, bool) {
	key := fmt.Appendf(nil, "%d:%s", len(from), from)
	for _, arg := range plain(args) {
		value, err := driver.DefaultParameterConverter.ConvertValue(arg)
		if err != nil {
			return "", false
		}
		text := fmt.Sprint(value)
		key = fmt.Appendf(key, "|%T:%d:%s", value, len(text), text)
	}
	return string(key), true
}

// overCache records which lists were longer than CountLimit.
type overCache struct {
	mu   sync.Mutex
	seen *lru.Map[string, time.Time] // nil before the first
}

const (
	overTTL = 10 * time.Second
	overMax = 1000
)

func (c *overCache) over(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		return false
	}
	at, ok := c.seen.Get(key)
	return ok && time.Since(at) < overTTL
}

func (c *overCache) remember(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = lru.New[string, time.Time](overMax, nil)
	}
	c.seen.Put(key, time.Now(), 1)
}
