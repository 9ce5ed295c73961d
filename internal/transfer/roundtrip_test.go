package transfer_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"pgregory.net/rapid"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/badge"
	"svc/internal/blob"
	"svc/internal/board"
	"svc/internal/picture"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/transfer"
	"svc/internal/wiki"
)

// world is a group that was drawn, with all groups below it.
type world struct {
	groups []groupDraw
}

type groupDraw struct {
	parent               int // among those before; the first has none
	description          string
	settings             project.GroupSettings
	labels, milestones   []thing
	boards, badges       []thing
	members              []int64 // levels of the users, 0 for none
	avatar, wiki, closed bool
}

type thing struct {
	text    string
	n       int
	number  int64
	numbers []int
}

func drawWorld(t *rapid.T) world {
	text := rapid.StringOfN(rapid.RuneFrom([]rune("aZ09 <>&\"'\\/\n\t~#@ßé漢😀\u2028%{}")), 0, 12, -1)
	few := rapid.IntRange(0, 2)
	things := rapid.Custom(func(t *rapid.T) thing {
		return thing{text.Draw(t, "text"), few.Draw(t, "n"), rapid.Int64Range(0, 99).Draw(t, "number"), rapid.SliceOfN(rapid.IntRange(0, 5), 0, 4).Draw(t, "numbers")}
	})
	list := rapid.SliceOfN(things, 0, 2)
	var w world
	for i := range rapid.IntRange(1, 3).Draw(t, "groups") {
		g := groupDraw{
			description: text.Draw(t, "description"), labels: list.Draw(t, "labels"), milestones: list.Draw(t, "milestones"), boards: list.Draw(t, "boards"),
			badges: list.Draw(t, "badges"), avatar: rapid.Bool().Draw(t, "avatar"), wiki: rapid.Bool().Draw(t, "wiki"), closed: rapid.Bool().Draw(t, "closed"),
			members: rapid.SliceOfN(rapid.SampledFrom([]int64{0, 10, 15, 20, 30, 40, 50}), 2, 2).Draw(t, "members"),
		}
		if i > 0 {
			g.parent = rapid.IntRange(0, i-1).Draw(t, "parent")
		}
		g.settings = project.DraftSettings()
		g.settings.MembershipLock, g.settings.LFSEnabled = rapid.Bool().Draw(t, "lock"), rapid.Bool().Draw(t, "lfs")
		g.settings.TwoFactorGracePeriod = rapid.Int64Range(0, 100).Draw(t, "hours")
		g.settings.WikiAccessLevel = rapid.SampledFrom([]project.Feature{project.MembersOnly, project.Enabled}).Draw(t, "wiki level")
		w.groups = append(w.groups, g)
	}
	return w
}

// pixel is a picture.
var pixel, _ = base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")

// stage is a server whose background work the test does itself.
type fixture struct {
	*apptest.Server
	t      testing.TB
	by     actor.Actor
	people []int64
}

func newFixture(t testing.TB, s *apptest.Server) *fixture {
	t.Helper()
	id, _ := s.User(t, "alice")
	// Only administrators export digests of addresses and map members.
	s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /users/%d", id), As: apptest.RootToken, JSON: `{"admin":true}`, Status: 200})
	st := &fixture{s, t, actor.Actor{ID: id, Username: "alice", Name: "alice", Admin: true}, nil}
	for _, name := range []string{"bob", "carol"} {
		id, _ := s.User(t, name)
		st.people = append(st.people, id)
	}
	if err := s.Queue.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	return st
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// build makes what was drawn.
func (st *fixture) build(path string, w world) *project.Namespace {
	t, ctx := st.t, st.t.Context()
	var made []*project.Namespace
	var labels, milestones [][]int64 // ids, of each group and all above it
	for i, g := range w.groups {
		n := project.NewGroup{Name: fmt.Sprint("Group é ", i), Path: path, Description: g.description, Change: func(s *project.GroupSettings) { *s = g.settings }}
		var mine, goals []int64
		if i > 0 {
			n.ParentID, n.Path = &made[g.parent].ID, fmt.Sprint("g", i)
			mine, goals = append(mine, labels[g.parent]...), append(goals, milestones[g.parent]...)
		}
		if g.avatar {
			n.Avatar = &picture.File{Name: "x.png", Data: bytes.NewReader(pixel)}
		}
		group := must(st.Projects.CreateGroup(ctx, st.by, n))(t)
		made = append(made, group)
		at := project.Place{Ref: project.RefTo(group.ID), Group: true}
		for k, l := range g.labels {
			name, color := fmt.Sprintf("label %d %d %s", i, k, strings.TrimSpace(l.text)), fmt.Sprintf("#%06x", l.number)
			name = strings.ReplaceAll(name, ",", "")
			mine = append(mine, must(st.Plan.CreateLabel(ctx, st.by, at, plan.LabelFields{Name: &name, Color: &color, Description: &l.text}))(t).ID)
		}
		for k, m := range g.milestones {
			title, day := fmt.Sprintf("%d %d %s", i, k, m.text), fmt.Sprintf("20%02d-01-02", m.number)
			goal := must(st.Plan.CreateMilestone(ctx, st.by, at, plan.MilestoneFields{Title: &title, Description: &m.text, DueDate: &day}))(t)
			if m.n == 0 {
				must(st.Plan.UpdateMilestone(ctx, st.by, at, goal.ID, plan.MilestoneFields{Event: "close"}))(t)
			}
			goals = append(goals, goal.ID)
		}
		labels, milestones = append(labels, mine), append(milestones, goals)
		for k, b := range g.boards {
			st.board(at, fmt.Sprintf("%d %s", k, b.text), b, mine, goals)
		}
		for _, b := range g.badges {
			link := fmt.Sprintf("https://example.org/%d/%%{project_path}", b.number)
			must(st.Badges.Create(ctx, st.by, at, badge.Fields{Name: &b.text, LinkURL: &link, ImageURL: &link}))(t)
		}
		for k, level := range g.members {
			if level > 0 {
				// A level below that in a group above is refused, and not drawn again.
				_, _ = st.Projects.AddMember(ctx, st.by, at, project.NewMember{UserID: st.people[k], Level: project.Level(level), ExpiresAt: []string{"", "2100-01-01"}[k]})
			}
		}
		if g.wiki {
			title := "home"
			_, _, err := st.Wikis.Create(ctx, st.by, at, wiki.Fields{Title: &title, Content: &g.description})
			must(0, err)(t)
		}
	}
	return made[0]
}

func (st *fixture) board(at project.Place, name string, b thing, labels, goals []int64) {
	t, ctx := st.t, st.t.Context()
	name = strings.TrimSpace(name)
	hide := b.n > 1
	f := board.Fields{Name: &name, HideBacklog: &hide}
	if b.n == 1 && len(goals) > 0 {
		f.Milestone, f.Assignee, f.SetWeight, f.Weight = &goals[0], &st.people[0], true, &b.number
	}
	board := must(st.Boards.Create(ctx, st.by, at, f))(t)
	for _, n := range b.numbers {
		// The same list again is refused, and not drawn again.
		switch {
		case n < 2 && len(labels) > n:
			_, _ = st.Boards.AddList(ctx, st.by, at, board.ID, &labels[n], nil, nil)
		case n < 4 && len(goals) > n-2:
			_, _ = st.Boards.AddList(ctx, st.by, at, board.ID, nil, nil, &goals[n-2])
		case n >= 4:
			_, _ = st.Boards.AddList(ctx, st.by, at, board.ID, nil, &st.people[n-4], nil)
		}
	}
}

// export returns the file of a group.
func (st *fixture) export(ref project.Ref) []byte {
	t, ctx := st.t, st.t.Context()
	t.Helper()
	e := must(st.Transfer.StartExport(ctx, st.by, ref))(t)
	must(0, st.Transfer.RunExport(ctx, transfer.ExportWork{ExportID: e.ID}))(t)
	_, file, err := st.Transfer.OpenExport(ctx, st.by, ref)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	return must(io.ReadAll(file))(t)
}

// begin has an import of a file waiting.
func (st *fixture) begin(file []byte, path string) *transfer.Import {
	st.t.Helper()
	return must(st.Transfer.StartImport(st.t.Context(), st.by, transfer.NewImport{Name: "Copy", Path: path, Size: int64(len(file)), File: bytes.NewReader(file)}))(st.t)
}

func (st *fixture) look(i *transfer.Import) *transfer.Import {
	st.t.Helper()
	return must(st.Transfer.Import(st.t.Context(), st.by, i.ID))(st.t)
}

// unpack returns the entries of a file in their order, without the pack of a
// wiki: the same objects may be packed in other ways.
func unpack(t testing.TB, file []byte) (list []string) {
	t.Helper()
	unpacked := must(gzip.NewReader(bytes.NewReader(file)))(t)
	for r := tar.NewReader(unpacked); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		text := string(must(io.ReadAll(r))(t))
		if strings.HasSuffix(h.Name, ".bundle") {
			text, _, _ = strings.Cut(text, "\n\n")
		}
		if h.Name != "manifest.json" {
			list = append(list, h.Name+"\n"+text)
		}
	}
}

// TestRoundTrip draws groups: what is exported, imported and exported again has
// the same content.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		st := newFixture(t, s)
		draw := rapid.Custom(drawWorld)
		for seed := range 3 {
			top := st.build(fmt.Sprint("top", seed), draw.Example(seed))
			first := st.export(project.RefTo(top.ID))
			i := st.begin(first, fmt.Sprint("copy", seed))
			must(0, st.Transfer.RunImport(t.Context(), transfer.ImportWork{ImportID: i.ID}))(t)
			if i = st.look(i); i.State != transfer.Finished || len(i.Report.Missing) > 0 {
				t.Fatalf("seed %d: the import is %s: %s %v", seed, i.State, i.Error, i.Report.Missing)
			}
			want, got := unpack(t, first), unpack(t, st.export(project.Ref(i.Path)))
			if len(got) != len(want) {
				t.Fatalf("seed %d: %d entries, want %d", seed, len(got), len(want))
			}
			for k := range want {
				if got[k] != want[k] {
					t.Errorf("seed %d: other content\n%s\nwant\n%s", seed, got[k], want[k])
				}
			}
		}
	})
}

// breaking returns files that break off: no fault of theirs.
type breaking struct {
	blob.Store
	after []int64 // where each opening of one breaks off; the rest do not
	then  func()  // if set, is called there once instead
}

var errBroken = errors.New("the line is down")

func (b *breaking) Get(ctx context.Context, key string) (*blob.Object, error) {
	o, err := b.Store.Get(ctx, key)
	if err != nil || len(b.after) == 0 {
		return o, err
	}
	o.ReadSeekCloser = &breakingReader{o.ReadSeekCloser, b, b.after[0]}
	b.after = b.after[1:]
	return o, nil
}

type breakingReader struct {
	io.ReadSeekCloser
	store *breaking
	left  int64
}

func (r *breakingReader) Read(p []byte) (int, error) {
	if then := r.store.then; r.left <= 0 && then != nil {
		r.store.then, r.left = nil, math.MaxInt64
		then()
	}
	if r.left <= 0 {
		return 0, errBroken
	}
	n, err := r.ReadSeekCloser.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	return n, err
}

// manyLabels makes as many labels as the first argument says, of the group that is the second.
const manyLabels = `WITH RECURSIVE t (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < ?)
	INSERT INTO labels (namespace_id, name, color, description, created_at, updated_at) SELECT CAST(? AS BIGINT), 'label ' || n, '#112233', 'The label with the number ' || n, n, n FROM t`

// TestBrokenOff breaks an import off at several places, as the end of the process
// would: no one sees a part of the group, the next run makes it whole, and what
// the others made goes.
func TestBrokenOff(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		st, ctx := newFixture(t, s), t.Context()
		top := st.build("top", world{groups: []groupDraw{
			{settings: project.DraftSettings(), avatar: true, wiki: true, members: []int64{30, 0}}, {settings: project.DraftSettings(), labels: make([]thing, 3)},
		}})
		must(s.DB.ExecContext(ctx, manyLabels, 700, top.ID))(t) // more than one transaction
		file := st.export(project.RefTo(top.ID))
		count := func() (groups, labels int) {
			t.Helper()
			must(0, s.DB.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM namespaces), (SELECT count(*) FROM labels)`).Scan(&groups, &labels))(t)
			return groups, labels
		}
		groups, labels := count()
		size := int64(len(file))
		store := &breaking{Store: s.Blobs}
		s.Transfer.Blobs = store
		whole := st.begin(file, "whole")
		for _, part := range []int64{10, 40, 70, 95} {
			store.after = []int64{size, size * part / 100} // the first reading looks only
			if err := s.Transfer.RunImport(ctx, transfer.ImportWork{ImportID: whole.ID}); !errors.Is(err, errBroken) {
				t.Fatalf("broken off at %d %%: %v", part, err)
			}
			if _, err := s.Projects.Group(ctx, st.by, "whole"); err == nil {
				t.Fatalf("broken off at %d %%, the group is there", part)
			}
			if now := st.look(whole); now.State != transfer.Started || now.OwnerID != nil {
				t.Fatalf("broken off at %d %%: %+v", part, now)
			}
		}
		if made, _ := count(); made < groups+2 {
			t.Fatalf("%d groups, %d before: the import broke off before it made any", made, groups)
		}
		must(0, s.Transfer.RunImport(ctx, transfer.ImportWork{ImportID: whole.ID}))(t)
		if now := st.look(whole); now.State != transfer.Finished || now.OwnerID == nil {
			t.Errorf("in the end it is %+v", now)
		}
		must(0, s.Transfer.RunImport(ctx, transfer.ImportWork{ImportID: whole.ID}))(t) // its end was not written down

		never := st.begin(file, "never")
		for range 5 {
			store.after = []int64{size, size / 2}
			if err := s.Transfer.RunImport(ctx, transfer.ImportWork{ImportID: never.ID}); !errors.Is(err, errBroken) {
				t.Fatal(err)
			}
		}
		if now := st.look(never); now.State != transfer.Failed || now.Error == "" {
			t.Errorf("after five tries it is %+v", now)
		}
		must(0, s.Queue.Start(ctx))(t)
		must(0, s.Queue.Idle(ctx))(t)
		if g, l := count(); g != groups+2 || l != labels+703 {
			t.Errorf("%d groups and %d labels, want %d and %d", g, l, groups+2, labels+703)
		}
	})
}

// TestSweep removes files whose time is over, those of groups that are gone, and
// those of imports that never began.
func TestSweep(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		st, ctx := newFixture(t, s), t.Context()
		files := func() (n int) {
			t.Helper()
			for _, err := range s.Blobs.List(ctx, "transfer/") {
				must(0, err)(t)
				n++
			}
			return n
		}
		top := st.build("top", world{groups: []groupDraw{{settings: project.DraftSettings()}}})
		st.export(project.RefTo(top.ID))
		file := st.export(project.RefTo(top.ID)) // the first one is outdated now
		late := st.begin(file, "late")
		must(s.DB.ExecContext(ctx, `UPDATE group_imports SET state = 'uploading' WHERE id = ?`, late.ID))(t)
		waiting := st.begin(file, "waiting")
		must(0, s.Transfer.Sweep(ctx))(t)
		if n := files(); n != 3 {
			t.Errorf("%d files are left, want 3", n)
		}
		s.Clock.Move(25 * time.Hour)
		must(0, s.Transfer.Sweep(ctx))(t)
		if n := files(); n != 2 {
			t.Errorf("%d files are left a day later, want 2", n)
		}
		if _, err := s.Transfer.Import(ctx, st.by, late.ID); err == nil {
			t.Error("an import whose file never came is still there")
		}
		if now := st.look(waiting); now.State != transfer.Queued {
			t.Errorf("an import that waits is %s", now.State)
		}
		s.Clock.Move(7 * 24 * time.Hour)
		must(0, s.Transfer.Sweep(ctx))(t)
		if n := files(); n != 1 {
			t.Errorf("%d files are left a week later, want 1", n)
		}
	})
}
