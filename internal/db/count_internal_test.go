package db

import (
	"math"
	"testing"
)

func TestSnapshots(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		then, later string
		limit       uint64
		want        bool
	}{
		{"5:5:", "5:5:", math.MaxUint64, false},
		{"5:5:", "6:6:", math.MaxUint64, true},
		{"5:5:", "6:6:", 5, false},        // 5 began after the change
		{"5:5:", "5:7:5,6", 9, false},     // both are open
		{"5:5:", "5:7:5", 9, true},        // 6 has ended
		{"5:5:", "5:7:5", 6, false},       // but began after the change
		{"3:5:3,4", "3:5:3,4", 9, false},  // both are still open
		{"3:5:3,4", "4:5:4", 9, true},     // 3 has ended
		{"3:5:3,4", "4:5:4", 3, false},    // but began after the change
		{"3:5:3", "3:9:3,5,6", 7, false},  // 7 and 8 have ended
		{"3:5:3", "3:9:3,5,6", 8, true},   // and 7 matters
		{"3:5:3", "9:9:", 4, true},        // 3 has ended
		{"10:12:10", "11:12:", 10, false}, // the limit is lower than all
	} {
		then, ok := parseSnapshot(c.then)
		later, is := parseSnapshot(c.later)
		if !ok || !is || then.endedIn(later, c.limit) != c.want {
			t.Errorf("%s and then %s, below %d: %v, want %v", c.then, c.later, c.limit, !c.want, c.want)
		}
	}
	for _, text := range []string{"", "1:2", "1:x:", "1:2:y"} {
		if _, ok := parseSnapshot(text); ok {
			t.Errorf("%q is a snapshot", text)
		}
	}
	for _, c := range []struct {
		end  uint64
		next int32
		want uint64
	}{{10, 7, 10}, {10, 9, 12}, {1<<32 + 5, 5, 1<<32 + 8}, {1<<32 - 1, 1, 1<<32 + 4}, {1<<31 + 10, math.MinInt32 + 9, 1<<31 + 12}} {
		if got := (snapshot{end: c.end}).number(c.next); got != c.want {
			t.Errorf("the number after %d with %d: %d, want %d", c.end, c.next, got, c.want)
		}
	}
}

func TestTablesOfCount(t *testing.T) {
	t.Parallel()
	k := countTables{all: map[string]bool{"issues": true, "projects": true, "users": true}, noted: []string{"issues", "projects"}}
	for query, want := range map[string]int{
		"SELECT count(*) FROM (SELECT 1 FROM issues i JOIN projects p ON p.id = i.project_id) AS counted": 2,
		"SELECT 1 FROM issues i, projects p":               2,
		"SELECT 1 FROM issues i, users u":                  0,
		"SELECT 1 FROM issues i JOIN later l ON l.id = 1":  0,
		"SELECT 1 FROM issues i WHERE i.title = ' users '": 1,
	} {
		if got := k.of(query); len(got) != want {
			t.Errorf("tables of %q: %q", query, got)
		}
	}
}
