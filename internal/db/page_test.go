package db_test

import (
	"fmt"
	"slices"
	"testing"

	"svc/internal/db"
	"svc/internal/db/dbtest"
)

// TestListByOffset checks that every page is the corresponding part of the whole list, with
// and without joins, filters and arguments of columns.
func TestListByOffset(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for i := range 25 {
			must(t, d, fmt.Sprintf("INSERT INTO users (id, username, name, email, state, created_at, updated_at) VALUES (%d, 'u%d', 'Name %d', '', '%s', 0, 0)",
				i+1, i+1, i%3, []string{"active", "blocked"}[i/20]))
			must(t, d, fmt.Sprintf("INSERT INTO follows VALUES (%d, %d, 0)", i+1, i%2+1))
		}
		plain := db.Query[string]{Columns: "u.username", From: "users u", Order: []db.Order{{Name: "u.name", Text: true}, {Name: "u.id"}}, Scan: db.Value[string]}
		plain.Where.And("u.state = ?", "active")
		joined := db.Query[string]{
			Columns: "u.username || ?", ColumnArgs: []any{"!"}, From: "follows f JOIN users u ON u.id = f.follower_id LEFT JOIN emails e ON e.user_id = u.id",
			CountFrom: "follows f JOIN users u ON u.id = f.follower_id", Order: []db.Order{{Name: "u.id"}}, Desc: true, Scan: db.Value[string],
		}
		joined.Where.And("f.followed_id = ?", 2)
		for name, q := range map[string]db.Query[string]{"plain": plain, "joined": joined} {
			whole, err := db.List(t.Context(), d, q, db.Paging{Limit: 100, Totals: true})
			if err != nil || whole.More || whole.Total != len(whole.Items) || whole.Total < 10 {
				t.Fatalf("%s: %+v, %v", name, whole, err)
			}
			for offset := range whole.Total + 3 {
				page, err := db.List(t.Context(), d, q, db.Paging{Limit: 4, Offset: offset, Totals: true})
				if err != nil {
					t.Fatal(err)
				}
				end := min(offset+4, whole.Total)
				if want := whole.Items[min(offset, end):end]; !slices.Equal(page.Items, want) {
					t.Errorf("%s from %d: %v, want %v", name, offset, page.Items, want)
				}
				if page.More != (end < whole.Total) || page.Total != whole.Total || page.Over {
					t.Errorf("%s from %d: more %v, total %d", name, offset, page.More, page.Total)
				}
			}
		}
	})
}

// TestListAmong reads lists from candidates, with arguments in all parts of the query.
func TestListAmong(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		if err := d.Tx(t.Context(), func(tx *db.Tx) error {
			for id := 901; id <= 910; id++ {
				if _, err := tx.ExecContext(t.Context(), `INSERT INTO users (id, username, name, email, password_hash, namespace_id, created_at, updated_at) VALUES (?, ?, 'n', ?, '', ?, 0, 0)`,
					id, fmt.Sprint("user", id), fmt.Sprint(id, "@example.org"), id); err != nil {
					return err
				}
			}
			_, err := tx.ExecContext(t.Context(), `INSERT INTO follows (follower_id, followed_id, created_at) VALUES (901, 902, 0)`)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		q := db.Query[string]{
			Columns: "u.username || ? || CASE WHEN f.follower_id IS NULL THEN '' ELSE '+' END", ColumnArgs: []any{"!", 901},
			From: "users u LEFT JOIN follows f ON f.follower_id = ? AND f.followed_id = u.id", CountFrom: "users u",
			Order: []db.Order{{Name: "u.username", Text: true}, {Name: "u.id"}}, Desc: true, Scan: db.Value[string], Among: []int64{902, 904, 906, 908, 99999},
		}
		q.Where.And("u.id < ?", 907)
		for offset, want := range [][]string{{"user906!", "user904!"}, {"user904!", "user902!+"}, {"user902!+"}, {}} {
			page, err := db.List(t.Context(), d, q, db.Paging{Limit: 2, Offset: offset, Totals: true})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(page.Items, want) || page.Total != 3 || page.More != (offset == 0) {
				t.Errorf("from %d: %+v, want %v", offset, page, want)
			}
		}
		q.Among = []int64{}
		if page, err := db.List(t.Context(), d, q, db.Paging{Limit: 2, Totals: true}); err != nil || page.Items == nil || len(page.Items) > 0 || page.Total != 0 {
			t.Errorf("none: %+v, %v", page, err)
		}
	})
}

func TestSlicePage(t *testing.T) {
	t.Parallel()
	all := []int{1, 2, 3, 4, 5}
	for _, tt := range []struct {
		offset, limit int
		want          []int
		more          bool
	}{{0, 2, []int{1, 2}, true}, {4, 2, []int{5}, false}, {3, 2, []int{4, 5}, false}, {9, 2, []int{}, false}} {
		got := db.SlicePage(all, db.Paging{Offset: tt.offset, Limit: tt.limit})
		if !slices.Equal(got.Items, tt.want) || got.More != tt.more || got.Total != 5 || got.Over {
			t.Errorf("%d from %d: %+v", tt.limit, tt.offset, got)
		}
	}
	if got := db.SlicePage(make([]int, db.CountLimit+1), db.Paging{Limit: 1}); !got.Over {
		t.Error("a list over the limit has a total")
	}
}

func TestNullText(t *testing.T) {
	t.Parallel()
	if db.NullText("") != nil || *db.NullText("a") != "a" {
		t.Errorf("got %v and %v", db.NullText(""), db.NullText("a"))
	}
}
