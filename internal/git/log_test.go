package git

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"svc/internal/git/gittest"
)

// history is a repository with a merge, a rename and several authors.
func history(t testing.TB) (Repo, *gittest.Repo) {
	t.Helper()
	r, g := open(t)
	text := "one\ntwo\nthree\nfour\nfive\nsix\n"
	g.Commit(gittest.Commit{Message: "start", Seconds: 1000, Changes: []gittest.Change{{Path: "a", Content: text}, {Path: "d/x", Content: "x\n"}, {Path: "d/y", Content: "y\n"}}})
	g.Commit(gittest.Commit{Message: "change a", Seconds: 2000, Author: "Bob <bob@x>", Changes: []gittest.Change{{Path: "a", Content: text + "seven\n"}}})
	base := g.Tip("main")
	g.Commit(gittest.Commit{Branch: "topic", Parents: []string{base}, Message: "topic work", Seconds: 2500, Changes: []gittest.Change{{Path: "d/x", Content: "x2\n"}, {Path: "bin", Content: "a\x00b"}}})
	g.Commit(gittest.Commit{Message: "rename a", Seconds: 3000, Author: "BOB <Bob@x>", Changes: []gittest.Change{{Path: "a", Delete: true}, {Path: "b", Content: text + "seven\neight\n"}}})
	g.Commit(gittest.Commit{Message: "merge topic", Seconds: 4000, Parents: []string{g.Tip("main"), g.Tip("topic")},
		Changes: []gittest.Change{{Path: "d/x", Content: "x2\n"}, {Path: "bin", Content: "a\x00b"}}})
	g.Commit(gittest.Commit{Branch: "lone", Root: true, Message: "alone", Seconds: 5000, Changes: []gittest.Change{{Path: "z", Content: "z"}}})
	return r, g
}

func TestLog(t *testing.T) {
	t.Parallel()
	r, _ := history(t)
	for _, c := range []struct {
		name string
		o    LogOptions
		want string
	}{
		{"all of main", LogOptions{From: []string{"main"}}, "merge topic, rename a, topic work, change a, start"},
		{"page", LogOptions{From: []string{"main"}, Skip: 1, Limit: 2}, "rename a, topic work"},
		{"first parent", LogOptions{From: []string{"main"}, FirstParent: true}, "merge topic, rename a, change a, start"},
		{"range", LogOptions{From: []string{"main"}, Not: []string{"main~1"}}, "merge topic, topic work"},
		{"several", LogOptions{From: []string{"topic", "lone"}}, "alone, topic work, change a, start"},
		{"everything", LogOptions{All: true, Limit: 2}, "alone, merge topic"},
		{"path", LogOptions{From: []string{"main"}, Paths: []string{"a"}}, "rename a, change a, start"},
		{"new path", LogOptions{From: []string{"main"}, Paths: []string{"b"}}, "rename a"},
		{"followed", LogOptions{From: []string{"main"}, Paths: []string{"b"}, Follow: true}, "rename a, change a, start"},
		{"directory", LogOptions{From: []string{"main"}, Paths: []string{"d/"}}, "topic work, start"},
		{"pattern is a name", LogOptions{From: []string{"main"}, Paths: []string{"*"}}, ""},
		{"magic is a name", LogOptions{From: []string{"main"}, Paths: []string{":(top)a"}}, ""},
		{"option is a name", LogOptions{From: []string{"main"}, Paths: []string{"--all"}}, ""},
		{"since", LogOptions{From: []string{"main"}, Since: time.Unix(3000, 0)}, "merge topic, rename a"},
		{"until", LogOptions{From: []string{"main"}, Until: time.Unix(2000, 0)}, "change a, start"},
		{"author", LogOptions{From: []string{"main"}, Author: "bob"}, "rename a, change a"},
		{"author is no pattern", LogOptions{From: []string{"main"}, Author: "b.b"}, ""},
		{"message", LogOptions{From: []string{"main"}, Message: "TOPIC"}, "merge topic, topic work"},
		{"no merges", LogOptions{From: []string{"main"}, NoMerges: true, Limit: 1}, "rename a"},
		{"topo", LogOptions{From: []string{"main"}, Order: Topo}, "merge topic, topic work, rename a, change a, start"},
	} {
		for _, when := range []string{"first", "again"} {
			list, err := r.Log(t.Context(), c.o)
			if got := titles(list); err != nil || got != c.want {
				t.Errorf("%s, %s: %q %v", c.name, when, got, err)
			}
		}
		n, err := r.Count(t.Context(), c.o)
		if want := strings.Count(c.want, ",") + min(1, len(c.want)); err != nil || n != want {
			t.Errorf("%s: counted %d, want %d: %v", c.name, n, want, err)
		}
		var walked []*Commit
		for commit, err := range r.Walk(t.Context(), c.o) {
			if err != nil {
				t.Fatal(err)
			}
			walked = append(walked, commit)
		}
		if got := titles(walked); got != c.want {
			t.Errorf("%s: walked %q", c.name, got)
		}
	}
	for rev, want := range map[string]error{"none": ErrNotFound, "--all": ErrBadRevision, "main..topic": ErrBadRevision} {
		if _, err := r.Log(t.Context(), LogOptions{From: []string{rev}}); !errors.Is(err, want) {
			t.Errorf("%s: %v", rev, err)
		}
	}
}

func titles(list []*Commit) string {
	var s []string
	for _, c := range list {
		s = append(s, c.Title)
	}
	return strings.Join(s, ", ")
}

func TestWalkStops(t *testing.T) {
	t.Parallel()
	g := gittest.Generate(t, gittest.Size{Commits: 2000, Files: 5})
	r := newEngine(t, Limits{}).Repo(g.Path)
	n := 0
	for _, err := range r.Walk(t.Context(), LogOptions{From: []string{"main"}}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 300 {
			break
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for _, err := range r.Walk(ctx, LogOptions{From: []string{"main"}}) {
		cancel()
		last = err
	}
	if !errors.Is(last, context.Canceled) || r.engine.commands.Held() != 0 {
		t.Error(last)
	}
	all := 0
	for _, err := range r.Walk(t.Context(), LogOptions{From: []string{"main"}}) {
		if err != nil {
			t.Fatal(err)
		}
		all++
	}
	if all != 2000 {
		t.Errorf("%d commits", all)
	}
}

func TestAncestry(t *testing.T) {
	t.Parallel()
	r, g := history(t)
	for range 2 {
		base, err := r.MergeBase(t.Context(), "main~1", "topic")
		if err != nil || string(base) != g.Git("rev-parse", "main~2") {
			t.Error(base, err)
		}
		base, err = r.MergeBase(t.Context(), "main", "topic", "main~3")
		if err != nil || string(base) != g.Git("rev-parse", "main~3") {
			t.Error(base, err)
		}
		if _, err := r.MergeBase(t.Context(), "main", "lone"); !errors.Is(err, ErrNotFound) {
			t.Error(err)
		}
		for _, c := range []struct {
			a, b string
			want bool
		}{{"topic", "main", true}, {"main", "topic", false}, {"main", "main", true}, {"lone", "main", false}} {
			if got, err := r.IsAncestor(t.Context(), c.a, c.b); err != nil || got != c.want {
				t.Errorf("%s of %s: %v %v", c.a, c.b, got, err)
			}
		}
		for _, c := range []struct {
			from, to      string
			ahead, behind int
		}{{"main", "topic", 0, 2}, {"topic", "main", 2, 0}, {"main~1", "topic", 1, 1}, {"main", "main", 0, 0}, {"main", "lone", 1, 5}} {
			if ahead, behind, err := r.Distance(t.Context(), c.from, c.to); err != nil || ahead != c.ahead || behind != c.behind {
				t.Errorf("%s from %s: %d ahead, %d behind, %v", c.to, c.from, ahead, behind, err)
			}
		}
	}
	refs, err := r.Contains(t.Context(), "topic", Heads, 0)
	if d := cmp.Diff([]string{"refs/heads/main", "refs/heads/topic"}, refs); err != nil || d != "" {
		t.Error(err, d)
	}
	if refs, err := r.Contains(t.Context(), "topic", Heads, 1); err != nil || len(refs) != 1 {
		t.Error(refs, err)
	}
	// The result is cached until a ref changes.
	tip, err := r.Ref(t.Context(), Heads+"topic")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		new  OID
		want []string
	}{{tip.ID, []string{"refs/heads/main", "refs/heads/newer", "refs/heads/topic"}}, {ZeroOID, []string{"refs/heads/main", "refs/heads/topic"}}} {
		if err := r.UpdateRefs(t.Context(), []Update{{Ref: Heads + "newer", New: c.new}}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			refs, err := r.Contains(t.Context(), "topic", Heads, 0)
			if d := cmp.Diff(c.want, refs); err != nil || d != "" {
				t.Error(err, d)
			}
		}
	}
	if refs, err := r.Contains(t.Context(), "topic", "refs/none/", 0); err != nil || len(refs) != 0 {
		t.Error(refs, err)
	}
	if _, err := r.Contains(t.Context(), "topic", "--shell", 1); !errors.Is(err, ErrBadRef) {
		t.Error(err)
	}
}

func TestStatsAndContributors(t *testing.T) {
	t.Parallel()
	r, g := history(t)
	list, err := r.Log(t.Context(), LogOptions{From: []string{"main"}})
	if err != nil {
		t.Fatal(err)
	}
	var ids []OID
	for _, c := range list {
		ids = append(ids, c.ID)
	}
	for range 2 {
		stats, err := r.Stats(t.Context(), ids)
		if d := cmp.Diff([]Stat{{1, 1}, {1, 0}, {1, 1}, {1, 0}, {8, 0}}, stats); err != nil || d != "" {
			t.Error(err, d)
		}
	}
	empty := OID(g.Commit(gittest.Commit{Branch: "empty", Parents: []string{string(ids[0])}}))
	if stats, err := r.Stats(t.Context(), []OID{empty}); err != nil || stats[0] != (Stat{}) {
		t.Error(stats, err)
	}
	sum := func(rev string) []Contributor {
		t.Helper()
		c, err := r.Contributors(t.Context(), rev)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	// Each commit belongs to a week, whichever part of the history was cached.
	weekless := func(list []Contributor) []Contributor {
		t.Helper()
		list = slices.Clone(list)
		for i, c := range list {
			n := 0
			for _, commits := range c.Weeks {
				n += commits
			}
			if n != c.Commits {
				t.Errorf("%s: %d commits, of which %d in weeks", c.Name, c.Commits, n)
			}
			list[i].Weeks = nil
		}
		return list
	}
	before := weekless(sum("main~2"))
	if d := cmp.Diff([]Contributor{{"Bob", "bob@x", 1, Stat{1, 0}, nil}, {"Ann Author", "ann@example.com", 1, Stat{8, 0}, nil}}, before); d != "" {
		t.Error(d)
	}
	want := []Contributor{{"BOB", "Bob@x", 2, Stat{2, 0}, nil}, {"Ann Author", "ann@example.com", 2, Stat{9, 1}, nil}}
	if d := cmp.Diff(want, weekless(sum("main"))); d != "" {
		t.Error(d)
	}
	// Without the cached older part the result is the same.
	eachNew := newEngine(t, Limits{}).Repo(g.Path)
	if c, err := eachNew.Contributors(t.Context(), "main"); err != nil || cmp.Diff(want, weekless(c)) != "" {
		t.Error(c, err)
	}
	if c := sum("lone"); len(c) != 1 || c[0].Commits != 1 {
		t.Error(c)
	}
}

func TestLastCommits(t *testing.T) {
	t.Parallel()
	r, g := history(t)
	for range 2 {
		last, err := r.LastCommits(t.Context(), "main", "", []string{"b", "bin", "d", "nothing"})
		got := map[string]string{}
		for name, c := range last {
			got[name] = c.Title
		}
		if d := cmp.Diff(map[string]string{"b": "rename a", "bin": "topic work", "d": "topic work"}, got); err != nil || d != "" {
			t.Error(err, d)
		}
		last, err = r.LastCommits(t.Context(), "main", "/d/", []string{"x", "y"})
		if err != nil || last["x"].Title != "topic work" || last["y"].Title != "start" {
			t.Error(last, err)
		}
	}
	for _, name := range []string{"", "..", "a/b", "a\x00"} {
		if _, err := r.LastCommits(t.Context(), "main", "", []string{name}); !errors.Is(err, ErrBadPath) {
			t.Errorf("%q: %v", name, err)
		}
	}
	// A file named like a commit ID, and one with a newline.
	odd := []string{string(ZeroOID), "a\nb"}
	id := g.Commit(gittest.Commit{Branch: "odd", Root: true, Changes: []gittest.Change{{Path: odd[0], Content: "1"}, {Path: odd[1], Content: "1"}}})
	last, err := r.LastCommits(t.Context(), "odd", "", odd)
	if err != nil || len(last) != 2 || string(last[odd[0]].ID) != id || string(last[odd[1]].ID) != id {
		t.Error(last, err)
	}
}

func TestBlame(t *testing.T) {
	t.Parallel()
	r, _ := history(t)
	for range 2 {
		ranges, err := r.Blame(t.Context(), BlameOptions{Rev: "main", Path: "b"})
		var got []string
		for _, b := range ranges {
			got = append(got, fmt.Sprintf("%s %s %d %s", b.Commit.Title, b.Path, b.First, strings.Join(b.Lines, "|")))
		}
		want := []string{"start a 1 one|two|three|four|five|six", "change a a 7 seven", "rename a b 8 eight"}
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Error(err, d)
		}
	}
	ranges, err := r.Blame(t.Context(), BlameOptions{Rev: "main", Path: "b", From: 6, To: 7})
	if err != nil || len(ranges) != 2 || ranges[0].First != 6 || ranges[1].Lines[0] != "seven" {
		t.Error(ranges, err)
	}
	for _, c := range []struct {
		o    BlameOptions
		want error
	}{
		{BlameOptions{Rev: "main", Path: "none"}, ErrNotFound},
		{BlameOptions{Rev: "main", Path: "d"}, ErrNotFound},
		{BlameOptions{Rev: "none", Path: "b"}, ErrNotFound},
		{BlameOptions{Rev: "main", Path: "../b"}, ErrBadPath},
		{BlameOptions{Rev: "main", Path: "b", From: 100, To: 200}, ErrNotFound},
		{BlameOptions{Rev: "main", Path: "b", From: 3, To: 2}, ErrNotFound},
	} {
		if _, err := r.Blame(t.Context(), c.o); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c.o, err)
		}
	}
}

// TestCommitsThere reads the existing commits among IDs of all kinds, in several batches.
func TestCommitsThere(t *testing.T) {
	t.Parallel()
	r, g := history(t)
	main, topic := OID(g.Tip("main")), OID(g.Tip("topic"))
	ids := []OID{main, ZeroOID, OID(g.Git("rev-parse", "main:b")), main}
	for i := range questions {
		ids = append(ids, OID(fmt.Sprintf("%040x", i+1)))
	}
	ids = append(ids, topic)
	for range 2 { // then they are cached
		list, err := r.CommitsThere(t.Context(), ids)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range list {
			is := ids[i] == main || ids[i] == topic
			if is != (c != nil) || is && c.ID != ids[i] {
				t.Errorf("%s: %v", ids[i], c)
			}
		}
	}
	if _, err := r.Commits(t.Context(), []OID{main, ZeroOID}); !errors.Is(err, ErrNotFound) {
		t.Errorf("one that is not there: %v", err)
	}
}
