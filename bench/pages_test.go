package bench

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"svc/internal/app"
	"svc/internal/db/dbtest"
)

// The lengths of the compared lists. The middle one is the shortest that has the
// deepest page that offset pagination allows.
const (
	fewRows  = 1_000
	deepRows = 51_000
	manyRows = 1_000_000
)

const (
	pageRounds = 60
	pageReads  = 8 // per round
	// deepPage is the last page of 20 that begins within the largest offset.
	deepPage = 50_000/20 + 1
)

// pages compares a page of a long list with a page of a short one, for an
// administrator who sends one request at a time with the lean client.
//
// A keyset page is compared with the page at the same relative position of the short
// list: the first page, the middle page, which is read repeatedly, and pages at
// random positions that were not read before. An offset page is compared with the
// page of the same number if the short list has it; page 400 with page 50, the last
// one of the short list; the deepest page with the same page of the shortest list
// that has it.
func pages(b *testing.B, t *table) {
	b.Run("sqlite", func(b *testing.B) {
		pagesOn(b, t, "SQLite", func() string { return "" })
	})
	if os.Getenv("TEST_POSTGRES") != "" {
		b.Run("postgres", func(b *testing.B) {
			pagesOn(b, t, "PostgreSQL", func() string { return dbtest.Postgres(b).URL })
		})
	}
}

func pagesOn(b *testing.B, t *table, on string, newDatabase func() string) {
	servers := map[int]*app.Server{}
	for _, rows := range []int{fewRows, deepRows, manyRows} {
		s := serve(b, newDatabase())
		fillUsers(b, s.DB, rows)
		fillEvents(b, s.DB, rows)
		servers[rows] = s
	}
	for _, l := range lists() {
		first := func(int) []string { return []string{l.keyset("")} }
		middle := func(rows int) []string { return []string{l.keyset(l.cursor(b, servers[rows], rows/2))} }
		random := func(rows int) []string { return l.random(b, servers[rows], rows) }
		page := func(short, long int) func(rows int) []string {
			return func(rows int) []string {
				if rows == manyRows {
					return []string{l.offset(long)}
				}
				return []string{l.offset(short)}
			}
		}
		for _, c := range []struct {
			name  string
			paths func(rows int) []string
			rows  int // number of rows of the short list
			most  float64
		}{
			{"keyset, first page", first, fewRows, 1.3},
			{"keyset, middle page", middle, fewRows, 1.3},
			{"keyset, random pages", random, fewRows, 1.3},
			{"page 1 with total", page(1, 1), fewRows, 2},
			{"page 50 with total", page(50, 50), fewRows, 2},
			{"page 400 with total, against page 50", page(50, 400), fewRows, 2},
			{fmt.Sprintf("page %d with total", deepPage), page(deepPage, deepPage), deepRows, 2},
		} {
			b.Run(l.name+"/"+c.name, func(b *testing.B) {
				short := newWalk(b, servers[c.rows], c.paths(c.rows))
				long := newWalk(b, servers[manyRows], c.paths(manyRows))
				comparePages(b, t, short, long, figure{
					name: fmt.Sprintf("%s, %s (%s)", l.name, c.name, on), limit: c.most, unit: fmt.Sprintf("× at %d rows", c.rows),
				})
			})
		}
	}
}

// comparePages reads pages of a short and of a long list alternately and completes
// the figure.
func comparePages(b *testing.B, t *table, short, long *walk, f figure) {
	b.Helper()
	short.read(b) // prepares statements
	long.read(b)
	var ratios, before, after []float64
	for b.Loop() {
		for range pageRounds {
			x, y := short.read(b), long.read(b)
			ratios, before, after = append(ratios, y/x), append(before, x), append(after, y)
		}
	}
	f.measured = median(ratios)
	f.note = fmt.Sprintf("%.2f ms, %.2f ms at %d", median(before), median(after), manyRows)
	t.add(b, f)
}

// walk reads consecutive pages, and starts again after the last one.
type walk struct {
	pages []*lean
	at    int
}

func newWalk(b testing.TB, s *app.Server, paths []string) *walk {
	b.Helper()
	return newWalkAs(b, s, rootToken, paths)
}

func newWalkAs(b testing.TB, s *app.Server, token string, paths []string) *walk {
	b.Helper()
	w := &walk{}
	for _, path := range paths {
		c, err := newLean("http://"+s.Addr()+"/api/v4/"+path, token)
		if err != nil {
			b.Fatal(err)
		}
		if len(w.pages) > 0 {
			c.conn = w.pages[0].conn
		} else if err := c.dial(); err != nil {
			b.Fatal(err)
		}
		w.pages = append(w.pages, c)
	}
	b.Cleanup(func() { w.pages[0].conn.Close() })
	return w
}

// read reads some pages and returns the durations in milliseconds.
func (w *walk) read(b testing.TB) float64 {
	b.Helper()
	start := time.Now()
	for range pageReads {
		if err := w.pages[w.at%len(w.pages)].send(); err != nil {
			b.Fatal(err)
		}
		w.at++
	}
	return time.Since(start).Seconds() * 1e3 / pageReads
}

// list is a measured list.
type list struct {
	name  string
	path  string
	table string
	by    string // the column by which it is sorted, before the ID
}

func lists() []list {
	return []list{
		{"audit events", "audit_events?per_page=20", "audit_events", "id"},
		{"users by id", "users?per_page=20&order_by=id", "users", "id"},
		{"users by name", "users?per_page=20&order_by=name", "users", "name"},
		{"users by username", "users?per_page=20&order_by=username", "users", "username"},
	}
}

func (l list) offset(page int) string { return l.path + "&page=" + strconv.Itoa(page) }

func (l list) keyset(cursor string) string { return l.path + "&pagination=keyset&cursor=" + cursor }

// cursor returns the cursor of the page after a number of rows, because following
// links would take too long.
func (l list) cursor(b testing.TB, s *app.Server, rows int) string {
	b.Helper()
	return l.cursorOf(b, s, `ORDER BY `+l.by+`, id LIMIT 1 OFFSET ?`, rows)
}

// random returns the cursors of pages in the whole list, enough that none is read
// twice in a measurement.
func (l list) random(b testing.TB, s *app.Server, rows int) []string {
	b.Helper()
	random := rand.New(rand.NewPCG(1, uint64(rows)))
	var last int64
	if err := s.DB.QueryRowContext(b.Context(), `SELECT max(id) FROM `+l.table).Scan(&last); err != nil {
		b.Fatal(err)
	}
	var pages []string
	for range (pageRounds + 1) * pageReads {
		// IDs of users that the instance creates leave gaps at the start.
		pages = append(pages, l.keyset(l.cursorOf(b, s, `WHERE id >= ? ORDER BY id LIMIT 1`, random.Int64N(last)+1)))
	}
	return pages
}

// cursorOf returns the cursor at the row that a query selects.
func (l list) cursorOf(b testing.TB, s *app.Server, which string, arg any) string {
	b.Helper()
	var value, id any
	err := s.DB.QueryRowContext(b.Context(), `SELECT `+l.by+`, id FROM `+l.table+` `+which, arg).Scan(&value, &id)
	if err != nil {
		b.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{l.by: value, "id": id})
	if err != nil {
		b.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}
