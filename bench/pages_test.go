package bench

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/app"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/user"
)

const (
	fewRows  = 1_000
	manyRows = 1_000_000

	pageSize   = 20
	pageRounds = 25
	pageReads  = 16 // in a round
)

// pages compares a page of a list of many rows with a page of a list of few.
func pages(b *testing.B, t *table) {
	b.Run("sqlite", func(b *testing.B) { pagesOn(b, t, "SQLite", "", "") })
	if os.Getenv("TEST_POSTGRES") != "" {
		b.Run("postgres", func(b *testing.B) { pagesOn(b, t, "PostgreSQL", dbtest.Postgres(b).URL, dbtest.Postgres(b).URL) })
	}
}

func pagesOn(b *testing.B, t *table, on, fewURL, manyURL string) {
	few, many := open(b, fewURL), open(b, manyURL)
	fill(b, few.DB, fewRows, fewRows)
	fill(b, many.DB, manyRows, manyRows)
	for _, l := range lists() {
		for _, c := range []struct {
			name      string
			few, many []db.Paging
			most      float64
		}{
			{"keyset, first", firstPages(), firstPages(), 1.3},
			{"keyset, deep", l.deepPages(b, few, fewRows), l.deepPages(b, many, manyRows), 1.3},
			// A list of few rows has no page 400.
			{"offset, page 1", offsetPages(1), offsetPages(1), 2},
			{"offset, page 400", offsetPages(1), offsetPages(400), 2},
		} {
			b.Run(l.name+"/"+c.name, func(b *testing.B) {
				var ratios, before, after []float64
				for i := range pageRounds + 1 {
					x, y := l.read(b, few, c.few, i), l.read(b, many, c.many, i)
					if i > 0 { // the first prepares statements
						ratios, before, after = append(ratios, y/x), append(before, x), append(after, y)
					}
				}
				t.add(b, figure{
					name: fmt.Sprintf("%s, %s (%s)", l.name, c.name, on), measured: median(ratios), limit: c.most, unit: "× at 1,000 rows",
					note: fmt.Sprintf("%.2f ms, %.2f ms at 1,000,000", median(before), median(after)),
				})
			})
		}
	}
}

// list is a list that is measured.
type list struct {
	name  string
	table string
	by    string // the column that it is sorted by, before the id
	page  func(b *testing.B, a *app.App, p db.Paging) (items int, err error)
}

func lists() []list {
	root := actor.Actor{ID: 1, Username: "root", Admin: true}
	all := []list{{"audit events", "audit_events", "id", func(b *testing.B, a *app.App, p db.Paging) (int, error) {
		page, err := a.Audit.List(b.Context(), root, audit.Filter{}, p)
		return len(page.Items), err
	}}}
	for _, by := range []string{"id", "name", "username"} {
		all = append(all, list{"users by " + by, "users", by, func(b *testing.B, a *app.App, p db.Paging) (int, error) {
			page, err := a.Users.List(b.Context(), root, user.Filter{}, user.Sort{By: by, Desc: true}, p)
			return len(page.Items), err
		}})
	}
	return all
}

// read reads the pages of a round and gives the milliseconds that each took.
func (l list) read(b *testing.B, a *app.App, choice []db.Paging, round int) float64 {
	b.Helper()
	start := time.Now()
	for i := range pageReads {
		n, err := l.page(b, a, choice[(round*pageReads+i)%len(choice)])
		if err != nil {
			b.Fatal(err)
		}
		if n != pageSize {
			b.Fatalf("a page of %d items", n)
		}
	}
	return time.Since(start).Seconds() * 1e3 / pageReads
}

func firstPages() []db.Paging { return []db.Paging{{Limit: pageSize, Keyset: true}} }

// offsetPages pages as the API does, with a total.
func offsetPages(page int) []db.Paging {
	return []db.Paging{{Limit: pageSize, Offset: (page - 1) * pageSize, Totals: true}}
}

// deepPages are pages from all over the middle of the list. None is read
// twice, so that a page is not in the database's cache for the sole reason
// that it was read just now.
func (l list) deepPages(b *testing.B, a *app.App, rows int) []db.Paging {
	b.Helper()
	pages, err := db.All(b.Context(), a.DB, func(s db.Scanner) (db.Paging, error) {
		var value, id any
		if err := s.Scan(&value, &id); err != nil {
			return db.Paging{}, err
		}
		p := db.Paging{Limit: pageSize, Keyset: true, After: []any{value, id}}
		if l.by == "id" {
			p.After = []any{id}
		}
		return p, nil
	}, `SELECT value, id FROM (SELECT `+l.by+` AS value, id, row_number() OVER (ORDER BY `+l.by+`, id) AS place FROM `+l.table+`) AS placed
		WHERE place > ? AND place < ? AND place % ? = 0`, rows/4, rows*3/4, rows/1000)
	if err != nil {
		b.Fatal(err)
	}
	if len(pages) < pageRounds*pageReads {
		b.Fatalf("only %d places in %s", len(pages), l.name)
	}
	rand.Shuffle(len(pages), func(i, k int) { pages[i], pages[k] = pages[k], pages[i] })
	return pages
}
