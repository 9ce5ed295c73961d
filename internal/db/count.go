package db

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"svc/internal/lru"
	"svc/internal/memo"
)

const (
	// snapshotTTL is how long a count of PostgreSQL is cached. After a failover to a server
	// that lost transactions, another snapshot can have the same text.
	snapshotTTL = time.Minute
	// maxSnapshots is the maximum number of cached counts.
	maxSnapshots = 2000
)

const (
	// currentSnapshot is the text of the snapshot that a statement of PostgreSQL reads:
	// the number after the last transaction that has ended, and the numbers before it of
	// those that have not. Statements with the same text see the same rows.
	currentSnapshot = `CAST(pg_current_snapshot() AS TEXT)`
	// nextNumber is the distance of the number of the next transaction from 3, the first
	// one, in 32 bits.
	nextNumber = `age(CAST('3' AS xid))`
)

// snapshotCache caches counts of PostgreSQL with their snapshots.
type snapshotCache struct {
	mu   sync.Mutex
	seen *lru.Map[[sha256.Size]byte, snapshotCount] // nil before the first

	tables  *countTables // nil before the first
	changes map[string]change
}

// snapshotCount is a count with the data that shows whether it is still valid.
type snapshotCount struct {
	snapshot string
	n        int
	at       time.Time
	// tables are the tables of the count if all of them have change sequences, nil
	// otherwise; values are the last values of the sequences before the count.
	tables []string
	values []int64
}

// countTables are the tables of the database, and the names of those that have a change
// sequence (migration 0075).
type countTables struct {
	all   map[string]bool
	noted []string
	query string // returns the snapshot, nextNumber and the last value of each sequence
}

// change is the last observed value of a change sequence. Only transactions with the number
// from or a later number started after that value was observed; they have not advanced the
// sequence as long as it has this value. 0 means unknown.
type change struct {
	value int64
	from  uint64
}

// moment is a snapshot with the values of the change sequences and the number of the next
// transaction, which were read after it.
type moment struct {
	snapshot string
	next     int32 // see nextNumber
	values   map[string]int64
}

func (c *snapshotCache) get(key [sha256.Size]byte) (snapshotCount, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		return snapshotCount{}, false
	}
	n, ok := c.seen.Get(key)
	return n, ok && time.Since(n.at) < snapshotTTL
}

func (c *snapshotCache) put(key [sha256.Size]byte, n snapshotCount) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = lru.New[[sha256.Size]byte, snapshotCount](maxSnapshots, nil)
	}
	c.seen.Put(key, n, 1)
}

// snapshotKey is the context key of the moment of a page.
type snapshotKey struct{}

// countSnapshot runs a count query on PostgreSQL, or returns the cached result if no
// transaction that wrote to its tables has ended since, on any node. The count and its
// snapshot are read by one statement, so that a write during the query is not missed.
func (d *DB) countSnapshot(ctx context.Context, text, query string, args []any) (n int, err error) {
	known, err := d.countTables(ctx)
	if err != nil {
		return 0, err
	}
	now, err := memo.Get(ctx, snapshotKey{}, func() (moment, error) { return d.readMoment(ctx, known) })
	if err != nil {
		return 0, err
	}
	key := sha256.Sum256([]byte(text))
	if last, ok := d.snapshots.get(key); ok && d.snapshots.unchanged(last, now) {
		return last.n, nil
	}
	counted := snapshotCount{at: time.Now(), tables: known.of(query)}
	for _, name := range counted.tables {
		counted.values = append(counted.values, now.values[name])
	}
	query = strings.Replace(query, `SELECT count(*) FROM`, `SELECT count(*), `+currentSnapshot+` FROM`, 1)
	if err := d.QueryRowContext(ctx, query, args...).Scan(&counted.n, &counted.snapshot); err != nil {
		return 0, err
	}
	d.snapshots.put(key, counted)
	return counted.n, nil
}

// unchanged reports whether a count is still valid.
//
// A transaction that ended after the count, and wrote to one of its tables, advanced the
// sequence of the table before it ended. If it did that after the value of the count was
// read, the value is another one now. Otherwise it had not ended in the snapshot of the
// count, and has a number before that of the change.
func (c *snapshotCache) unchanged(last snapshotCount, now moment) bool {
	if last.snapshot == now.snapshot {
		return true
	}
	then, ok := parseSnapshot(last.snapshot)
	current, is := parseSnapshot(now.snapshot)
	if !ok || !is || len(last.tables) == 0 {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, name := range last.tables {
		seen := c.changes[name]
		if now.values[name] != last.values[i] || seen.value != last.values[i] {
			return false
		}
		before := seen.from
		if before == 0 {
			before = math.MaxUint64
		}
		if then.endedIn(current, before) {
			return false
		}
	}
	return true
}

// readMoment reads the snapshot and the change sequences.
func (d *DB) readMoment(ctx context.Context, known *countTables) (moment, error) {
	before := d.snapshots.seenChanges()
	now := moment{values: make(map[string]int64, len(known.noted))}
	values := make([]int64, len(known.noted))
	into := []any{&now.snapshot, &now.next}
	for i := range values {
		into = append(into, &values[i])
	}
	if err := d.QueryRowContext(ctx, known.query).Scan(into...); err != nil {
		return now, err
	}
	for i, name := range known.noted {
		now.values[name] = values[i]
	}
	d.snapshots.note(before, now)
	return now, nil
}

// seenChanges returns the last observed values.
func (c *snapshotCache) seenChanges() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	values := make(map[string]int64, len(c.changes))
	for name, seen := range c.changes {
		values[name] = seen.value
	}
	return values
}

// note records the values of a moment that began when the values in before had been observed.
// For a value that was observed before the snapshot of the moment, it also records the first
// transaction.
func (c *snapshotCache) note(before map[string]int64, now moment) {
	snapshot, ok := parseSnapshot(now.snapshot)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes == nil {
		c.changes = map[string]change{}
	}
	for name, value := range now.values {
		seen := c.changes[name]
		switch earlier, was := before[name]; {
		case value > seen.value:
			c.changes[name] = change{value: value}
		case value < seen.value: // of an earlier moment
		case ok && was && earlier == value && seen.from == 0:
			c.changes[name] = change{value, snapshot.number(now.next)}
		}
	}
}

// snapshot is a parsed snapshot: the number after the last transaction that has ended, and
// the numbers before it of those that have not.
type snapshot struct {
	end  uint64
	open []uint64
}

// endedIn reports whether a transaction with a number below the limit had not ended in the
// snapshot, but has in a later one.
func (s snapshot) endedIn(later snapshot, limit uint64) bool {
	limit = min(limit, later.end)
	if slices.ContainsFunc(s.open, func(id uint64) bool { return id < limit && !slices.Contains(later.open, id) }) {
		return true
	}
	if limit <= s.end {
		return false
	}
	open := uint64(0)
	for _, id := range later.open {
		if id >= s.end && id < limit {
			open++
		}
	}
	return limit-s.end > open
}

// number returns the number of the next transaction after the snapshot.
func (s snapshot) number(next int32) uint64 {
	return s.end + uint64(uint32(next)+3-uint32(s.end))
}

func parseSnapshot(text string) (s snapshot, ok bool) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return s, false
	}
	var err error
	if s.end, err = strconv.ParseUint(parts[1], 10, 64); err != nil {
		return s, false
	}
	for id := range strings.SplitSeq(parts[2], ",") {
		if id == "" {
			continue
		}
		n, err := strconv.ParseUint(id, 10, 64)
		if err != nil {
			return s, false
		}
		s.open = append(s.open, n)
	}
	return s, true
}

// countTables returns the tables of the database. They are read once: the server has
// migrated the database before.
func (d *DB) countTables(ctx context.Context) (*countTables, error) {
	d.snapshots.mu.Lock()
	known := d.snapshots.tables
	d.snapshots.mu.Unlock()
	if known != nil {
		return known, nil
	}
	names, err := All(ctx, d, Value[string], `
		SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = ANY (current_schemas(FALSE)) AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') ORDER BY c.relname`)
	if err != nil {
		return nil, fmt.Errorf("find tables: %w", err)
	}
	known = &countTables{all: map[string]bool{}, query: `SELECT ` + currentSnapshot + `, ` + nextNumber}
	for _, name := range names {
		if table, ok := strings.CutPrefix(name, "changes_"); ok && slices.Contains(names, table) {
			known.noted, known.query = append(known.noted, table), known.query+`, (SELECT last_value FROM `+name+`)`
			continue
		}
		known.all[name] = true
	}
	d.snapshots.mu.Lock()
	defer d.snapshots.mu.Unlock()
	d.snapshots.tables = known
	return known, nil
}

// of returns the tables that a query names if all have a change sequence; nil otherwise. A
// column with the name of a table counts as the table.
func (k *countTables) of(query string) (list []string) {
	before := ""
	for word := range words(query) {
		switch {
		case k.all[word]:
			if !slices.Contains(k.noted, word) {
				return nil
			}
			if !slices.Contains(list, word) {
				list = append(list, word)
			}
		case (before == "FROM" || before == "JOIN") && word != "json_array_elements_text" && word != "SELECT" && word != "LATERAL":
			return nil // unknown: it may be newer than the list of tables
		}
		before = word
	}
	return list
}
