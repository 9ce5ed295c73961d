package bench

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"testing"
	"time"

	"svc/internal/app"
	"svc/internal/db/dbtest"
)

// How long the lists are that are compared. The middle one is the shortest
// that has a page 400.
const (
	fewRows  = 1_000
	someRows = 10_000
	manyRows = 1_000_000
)

const (
	pageRounds = 60
	pageReads  = 8 // in a round
)

// pages compares a page of a long list with the same page of a short one, as
// an administrator gets them who sends one request after the other.
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
	for _, rows := range []int{fewRows, someRows, manyRows} {
		s := serve(b, newDatabase())
		fillUsers(b, s.DB, rows)
		fillEvents(b, s.DB, rows)
		servers[rows] = s
	}
	for _, l := range lists() {
		for _, c := range []struct {
			name string
			path func(rows int) string
			rows int // of the short list
			most float64
		}{
			{"keyset, first page", func(int) string { return l.keyset("") }, fewRows, 1.3},
			{"keyset, deep page", func(rows int) string { return l.keyset(l.middle(b, servers[rows], rows)) }, fewRows, 1.3},
			{"page 1 with total", func(int) string { return l.offset(1) }, fewRows, 2},
			{"page 50 with total", func(int) string { return l.offset(50) }, fewRows, 2},
			{"page 400 with total", func(int) string { return l.offset(400) }, someRows, 2},
		} {
			b.Run(l.name+"/"+c.name, func(b *testing.B) {
				short := newLoad(b, address(servers[c.rows], c.path(c.rows)), rootToken)
				long := newLoad(b, address(servers[manyRows], c.path(manyRows)), rootToken)
				short.read(b) // prepares statements
				long.read(b)
				var ratios, before, after []float64
				for b.Loop() {
					for range pageRounds {
						x, y := short.read(b), long.read(b)
						ratios, before, after = append(ratios, y/x), append(before, x), append(after, y)
					}
				}
				t.add(b, figure{
					name: fmt.Sprintf("%s, %s (%s)", l.name, c.name, on), measured: median(ratios), limit: c.most,
					unit: fmt.Sprintf("× at %d rows", c.rows),
					note: fmt.Sprintf("%.2f ms, %.2f ms at %d", median(before), median(after), manyRows),
				})
			})
		}
	}
}

func address(s *app.Server, path string) string { return "http://" + s.Addr() + "/api/v4/" + path }

// read sends some requests, one after the other, and gives the milliseconds
// that each took.
func (l *load) read(b *testing.B) float64 {
	b.Helper()
	start := time.Now()
	for range pageReads {
		if _, err := l.send(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(start).Seconds() * 1e3 / pageReads
}

// list is a list that is measured.
type list struct {
	name  string
	path  string
	table string
	by    string // the column that it is sorted by, before the id
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

// middle is the cursor of the page in the middle of the list. Nobody follows
// links that far here.
func (l list) middle(b *testing.B, s *app.Server, rows int) string {
	b.Helper()
	var value, id any
	err := s.DB.QueryRowContext(b.Context(), `SELECT `+l.by+`, id FROM `+l.table+` ORDER BY `+l.by+`, id LIMIT 1 OFFSET ?`, rows/2).Scan(&value, &id)
	if err != nil {
		b.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{l.by: value, "id": id})
	if err != nil {
		b.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}
