package git

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"svc/internal/git/gittest"
)

func names(list []Ref) string {
	var s []string
	for _, r := range list {
		s = append(s, r.Short())
	}
	return strings.Join(s, " ")
}

func TestRefs(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	for i, name := range []string{"main", "b/2", "b/1", "zed", "a"} {
		g.Commit(gittest.Commit{Branch: name, Root: true, Seconds: int64(1000 + i*100), Changes: []gittest.Change{{Path: "x", Content: name}}})
	}
	g.Git("tag", "light", "zed")
	g.Git("tag", "-a", "-m", "m", "heavy", "main")
	g.Git("tag", "blob", g.Object("blob", "x"))
	check := func(when string) {
		for _, c := range []struct {
			name string
			o    RefOptions
			want string
		}{
			{"all heads", RefOptions{Place: Heads}, "a b/1 b/2 main zed"},
			{"down", RefOptions{Place: Heads, Order: ByNameDown}, "zed main b/2 b/1 a"},
			{"page", RefOptions{Place: Heads, After: Heads + "b/1", Limit: 2}, "b/2 main"},
			{"page down", RefOptions{Place: Heads, Order: ByNameDown, After: Heads + "main", Limit: 2}, "b/2 b/1"},
			{"after one that is gone", RefOptions{Place: Heads, After: Heads + "c"}, "main zed"},
			{"oldest", RefOptions{Place: Heads, Order: OldestFirst}, "main b/2 b/1 zed a"},
			{"newest", RefOptions{Place: Heads, Order: NewestFirst, After: Heads + "a", Limit: 2}, "zed b/1"},
			{"below", RefOptions{Place: "refs/heads/b/"}, "b/1 b/2"},
			{"search", RefOptions{Place: Heads, Match: func(s string) bool { return strings.Contains(s, "a") }}, "a main"},
			{"regex", RefOptions{Place: Heads, Match: regexp.MustCompile(`^b/\d$`).MatchString}, "b/1 b/2"},
			{"tags", RefOptions{Place: Tags}, "blob heavy light"},
			{"tags by time", RefOptions{Place: Tags, Order: NewestFirst}, "heavy light blob"},
			{"tags by time, up", RefOptions{Place: Tags, Order: OldestFirst}, "light heavy blob"},
			{"all", RefOptions{}, "a b/1 b/2 main zed blob heavy light"},
			{"none", RefOptions{Place: "refs/none/"}, ""},
		} {
			list, err := r.Refs(t.Context(), c.o)
			if got := names(list); err != nil || got != c.want {
				t.Errorf("%s: %s: %q %v", when, c.name, got, err)
			}
		}
		want := strings.Split(g.Git("for-each-ref", "--format=%(refname) %(objectname) %(*objectname)"), "\n")
		var got []string
		all, err := r.Refs(t.Context(), RefOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, ref := range all {
			peeled := ref.Target
			if ref.Tag == "" {
				peeled = ""
			}
			got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", ref.Name, ref.ID, peeled)))
			one, err := r.Ref(t.Context(), ref.Name)
			if err != nil || one != ref {
				t.Errorf("%s: %+v %v", when, one, err)
			}
		}
		for i := range want {
			want[i] = strings.TrimSpace(want[i])
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", when, d)
		}
	}
	check("loose")
	g.Git("pack-refs", "--all", "--prune")
	check("packed")
	g.Git("update-ref", "refs/heads/a", g.Commit(gittest.Commit{Branch: "a", Seconds: 5000}))

	check("mixed")
	if _, err := r.Refs(t.Context(), RefOptions{Place: "refs/../"}); !errors.Is(err, ErrBadRef) {
		t.Error(err)
	}
	if _, err := r.engine.Repo(t.TempDir()).Refs(t.Context(), RefOptions{Place: Heads}); !errors.Is(err, ErrNoRepository) {
		t.Error(err)
	}
	if _, err := r.Ref(t.Context(), "refs/heads/none"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

func TestBrokenRefsAreSkipped(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	id := OID(g.Commit(gittest.Commit{}))
	for name, content := range map[string]string{"torn": "rubbish", "lost": "1234567890123456789012345678901234567890\n", "x.lock": "", "circle": "ref: refs/heads/circle\n"} {
		if err := os.WriteFile(filepath.Join(g.Path, "refs/heads", name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := r.Refs(t.Context(), RefOptions{Place: Heads})
	if got := names(list); err != nil || got != "main" {
		t.Errorf("%s %v", got, err)
	}
	holdRefs(t, g.Path)
	err = r.UpdateRefs(t.Context(), []Update{{Ref: Heads + "x", Old: ZeroOID, New: id}})
	if !errors.Is(err, ErrConflict) || strings.Contains(err.Error(), g.Path) {
		t.Errorf("a lock: %v", err)
	}
}

// TestRefsAreNeverMissed checks that a ref that exists when a read begins is always found while
// refs are being packed.
func TestRefsAreNeverMissed(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	id := g.Commit(gittest.Commit{})
	stop := make(chan struct{})
	var made atomic.Int64
	var writers sync.WaitGroup
	writers.Go(func() {
		for i := 1; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			g.Git("update-ref", fmt.Sprintf("refs/heads/n/%d", i), id)
			made.Store(int64(i))
			g.Git("pack-refs", "--all", "--prune")
		}
	})
	for n := int64(0); n < 100; {
		n = made.Load()
		list, err := r.Refs(t.Context(), RefOptions{Place: Heads, plain: true})
		if err != nil || int64(len(list)) < n+1 {
			t.Errorf("%d refs of %d, %v", len(list), n+1, err)
			break
		}
		if n > 0 {
			if _, err := r.ResolveCommit(t.Context(), fmt.Sprintf("n/%d", n)); err != nil {
				t.Error(err)
				break
			}
		}
	}
	close(stop)
	writers.Wait()
}

func TestUpdateRefs(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	one := OID(g.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "x", Content: "1"}}}))
	two := OID(g.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "x", Content: "2"}}}))
	blob := OID(g.Object("blob", "x"))
	for _, c := range []struct {
		name    string
		updates []Update
		want    error
		ref     string
	}{
		{"create", []Update{{Ref: Heads + "a/b", Old: ZeroOID, New: one}, {Ref: Tags + "v1", Old: ZeroOID, New: one}}, nil, ""},
		{"create again", []Update{{Ref: Heads + "c", Old: ZeroOID, New: one}, {Ref: Heads + "a/b", Old: ZeroOID, New: one}}, ErrConflict, Heads + "a/b"},
		{"none of the others", []Update{{Ref: Heads + "c", Old: two, New: one}}, ErrConflict, Heads + "c"},
		{"move", []Update{{Ref: Heads + "a/b", Old: one, New: two}}, nil, ""},
		{"move from elsewhere", []Update{{Ref: Heads + "a/b", Old: one, New: two}}, ErrConflict, Heads + "a/b"},
		{"move no matter what", []Update{{Ref: Heads + "a/b", Old: "", New: one}}, nil, ""},
		{"in the way", []Update{{Ref: Heads + "a", Old: ZeroOID, New: one}}, ErrConflict, Heads + "a"},
		{"below", []Update{{Ref: Heads + "a/b/c", Old: ZeroOID, New: one}}, ErrConflict, Heads + "a/b/c"},
		{"delete with the wrong value", []Update{{Ref: Heads + "a/b", Old: two, New: ZeroOID}}, ErrConflict, Heads + "a/b"},
		{"delete", []Update{{Ref: Heads + "a/b", Old: one, New: ZeroOID}}, nil, ""},
		{"where the directory was", []Update{{Ref: Heads + "a", Old: ZeroOID, New: one}}, nil, ""},
		{"missing object", []Update{{Ref: Heads + "x", Old: ZeroOID, New: "1234567890123456789012345678901234567890"}}, ErrNotFound, ""},
		{"a blob", []Update{{Ref: Heads + "x", Old: ZeroOID, New: blob}}, ErrNotFound, ""},
		{"bad name", []Update{{Ref: Heads + "-x", Old: ZeroOID, New: one}}, ErrBadRef, ""},
		{"new line", []Update{{Ref: Heads + "x\ndelete refs/heads/main", Old: ZeroOID, New: one}}, ErrBadRef, ""},
		{"bad id", []Update{{Ref: Heads + "x", Old: ZeroOID, New: "HEAD"}}, ErrBadRevision, ""},
		{"nothing", nil, nil, ""},
	} {
		err := r.UpdateRefs(t.Context(), c.updates)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		var conflict *RefConflict
		if c.ref != "" && (!errors.As(err, &conflict) || conflict.Ref != c.ref) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	list, err := r.Refs(t.Context(), RefOptions{})
	if got := names(list); err != nil || got != "a main v1" {
		t.Errorf("%s %v", got, err)
	}
}

func TestOneOfManyUpdatesWins(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	base := OID(g.Commit(gittest.Commit{}))
	var all sync.WaitGroup
	var won sync.Map
	for i := range 8 {
		id := OID(g.Commit(gittest.Commit{Branch: fmt.Sprint("w", i), Parents: []string{string(base)}, Message: fmt.Sprint(i)}))
		all.Go(func() {
			err := r.UpdateRefs(t.Context(), []Update{{Ref: Heads + "main", Old: base, New: id}})
			if err == nil {
				won.Store(id, true)
			} else if !errors.Is(err, ErrConflict) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	n := 0
	won.Range(func(id, _ any) bool {
		n++
		if g.Tip("main") != string(id.(OID)) {
			t.Error("not the winner's")
		}
		return true
	})
	if n != 1 {
		t.Errorf("%d won", n)
	}
}

func TestDefaultBranch(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	adopt := func(want string, changed bool, pushed ...string) {
		t.Helper()
		got, is, err := r.AdoptBranch(t.Context(), pushed)
		if err != nil || got != want || is != changed {
			t.Errorf("%s %v %v", got, is, err)
		}
		if head := g.Git("symbolic-ref", "HEAD"); head != Heads+want {
			t.Error(head)
		}
	}
	adopt("main", false, Tags+"v1")
	adopt("main", false, Heads+"gone")
	for _, b := range []string{"topic", "master", "dev"} {
		g.Commit(gittest.Commit{Branch: b})
	}
	adopt("master", true, Heads+"topic", Heads+"master", Heads+"dev")
	adopt("master", false, Heads+"topic")
	if err := r.SetDefaultBranch(t.Context(), "dev"); err != nil {
		t.Error(err)
	}
	if b, err := r.DefaultBranch(t.Context()); b != "dev" || err != nil {
		t.Error(b, err)
	}
	if err := r.SetDefaultBranch(t.Context(), "a..b"); !errors.Is(err, ErrBadRef) {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(g.Path, "HEAD.lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	holdRefs(t, g.Path)
	if err := r.SetDefaultBranch(t.Context(), "main"); !errors.Is(err, ErrConflict) {
		t.Error(err)
	}
}
