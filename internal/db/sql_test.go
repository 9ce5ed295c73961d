package db

import (
	"fmt"
	"slices"
	"testing"
)

func TestRebind(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"":                                 "",
		"SELECT 1":                         "SELECT 1",
		"?":                                "$1",
		"a = ? AND b IN (?, ?)":            "a = $1 AND b IN ($2, $3)",
		"a = '?' AND b = ?":                "a = '?' AND b = $1",
		"a = 'it''s ?' AND b = ?":          "a = 'it''s ?' AND b = $1",
		`"odd?" = ?`:                       `"odd?" = $1`,
		`"a""?" = ?`:                       `"a""?" = $1`,
		`LIKE ? ESCAPE '\' AND b = ?`:      `LIKE $1 ESCAPE '\' AND b = $2`,
		"-- who's there?\nSELECT ?":        "-- who's there?\nSELECT $1",
		"SELECT ? -- what?":                "SELECT $1 -- what?",
		"/* it's ? */ ? /* ? */ - ?":       "/* it's ? */ $1 /* ? */ - $2",
		"a - ? / ?":                        "a - $1 / $2",
		"name = 'ü?' OR name = ?":          "name = 'ü?' OR name = $1",
		"?,?,?,?,?,?,?,?,?,?,?":            "$1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11",
		"an open quote ' keeps its ? mark": "an open quote ' keeps its ? mark",
	} {
		if got := rebind(query); got != want {
			t.Errorf("rebind(%q) = %q, want %q", query, got, want)
		}
	}
}

func TestBind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		query string
		args  []any
		text  string
		rest  string
	}{
		{"SELECT ?", []any{1}, "SELECT $1", "[1]"},
		{"a = ? LIMIT ?", []any{"x", 21}, "a = $1 LIMIT 21", "[x]"},
		{"a = ? LIMIT ? OFFSET ?", []any{"x", 21, 0}, "a = $1 LIMIT 21 OFFSET 0", "[x]"},
		{"a = ? LIMIT ? OFFSET ?", []any{"x", 21, 40}, "a = $1 LIMIT 21 OFFSET $2", "[x 40]"},
		{"(SELECT 1 LIMIT ?) WHERE a = ? LIMIT ?", []any{2400, int64(7), 21}, "(SELECT 1 LIMIT 2400) WHERE a = $1 LIMIT 21", "[7]"},
		{"a = ' LIMIT ?' AND b = ? LIMIT ?", []any{5, 6}, "a = ' LIMIT ?' AND b = $1 LIMIT 6", "[5]"},
		{"LIMIT ?", []any{-1}, "LIMIT $1", "[-1]"},
		{"LIMIT ?", []any{nil}, "LIMIT $1", "[<nil>]"},
		{"LIMIT ?, ?", []any{3}, "LIMIT 3, $1", "[]"}, // too few arguments: the driver returns the error
		{"a = ? LIMIT ?", []any{3}, "a = $1 LIMIT $2", "[3]"},
	} {
		s := rebound(c.query)
		for range 2 { // the second text is cached
			text, rest := s.bind(c.args)
			if text != c.text || fmt.Sprint(rest) != c.rest {
				t.Errorf("%q with %v: %q with %v, want %q with %s", c.query, c.args, text, rest, c.text, c.rest)
			}
		}
	}
	s := rebound("LIMIT ?")
	for n := range maxBound {
		s.bind([]any{n})
	}
	if text, args := s.bind([]any{maxBound}); text != "LIMIT $1" || len(args) != 1 {
		t.Errorf("more texts than allowed: %q", text)
	}
	if text, args := s.bind([]any{1}); text != "LIMIT 1" || len(args) != 0 {
		t.Errorf("a text was forgotten: %q", text)
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	got := slices.Collect(words(`SELECT i.id, 'no words' FROM issues i -- nor here
		JOIN "quoted" ON x_1 = ?`))
	want := []string{"SELECT", "i", "id", "FROM", "issues", "i", "JOIN", "ON", "x_1"}
	if !slices.Equal(got, want) {
		t.Errorf("words: %q", got)
	}
}

func TestSteady(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"SELECT 1":                    "SELECT 1",
		"a = ? AND b IN (?, ?)":       "a = +? AND b IN (+?, +?)",
		"a = 'it''s ?' -- ?\nAND b=?": "a = 'it''s ?' -- ?\nAND b=+?",
	} {
		if got := steady(query); got != want {
			t.Errorf("steady(%q) = %q, want %q", query, got, want)
		}
	}
	// The sign does not change a value, whatever its type.
	p := openPool(t, open(t))
	for kind, v := range map[string]any{"integer": int64(-7), "real": 1.5, "text": "-7", "null": nil, "blob": []byte{0, 'x'}} {
		var got any
		var gotKind string
		rows, err := p.query(t.Context(), "SELECT ?, typeof(?)", []any{v, v})
		if err == nil {
			err = (&Row{rows: &Rows{rows: rows}}).Scan(&got, &gotKind)
		}
		if err != nil || gotKind != kind || fmt.Sprint(got) != fmt.Sprint(v) {
			t.Errorf("%v (%s) became %v (%s), %v", v, kind, got, gotKind, err)
		}
	}
}

func TestReads(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]bool{
		"SELECT 1":                    true,
		"\n\t select * FROM users":    true,
		"(SELECT 1) UNION SELECT 2":   true,
		"-- insert\nSELECT 1":         true,
		"/* update */ SELECT 1":       true,
		"SELECTED":                    false,
		"INSERT INTO a SELECT 1":      false,
		"UPDATE a SET b = 1":          false,
		"DELETE FROM a":               false,
		"PRAGMA optimize":             false,
		"":                            false,
		"WITH a AS (SELECT 1) SELECT": true,
		"WITH a AS (SELECT 'delete' AS deleted_at, inserted FROM b) SELECT * FROM a": true,
		"WITH a AS (SELECT 1) INSERT INTO b SELECT * FROM a":                         false,
		"with a AS (SELECT 1) update b SET c = 1":                                    false,
		"WITH a AS (DELETE FROM b RETURNING id) SELECT id FROM a":                    false,
	} {
		if got := reads(query); got != want {
			t.Errorf("reads(%q) = %v", query, got)
		}
	}
}
