package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/transfer"
)

var times = regexp.MustCompile(`"(created|updated)_at":"[^"]*"`)

// proxy is a source that calls a function before a request.
type proxy struct {
	*httptest.Server
	count atomic.Int64
	at    atomic.Int64 // the request before which do is called
	do    atomic.Pointer[func()]
	stop  atomic.Pointer[stop]
}

// stop is a request that waits.
type stop struct {
	end     string // of its path
	reached chan struct{}
	goes    chan struct{}
}

func newProxy(t testing.TB, s *apptest.Server) *proxy {
	to := must(url.Parse(s.URL))(t)
	p := &proxy{}
	forward := httputil.NewSingleHostReverseProxy(to)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.count.Add(1) == p.at.Load() {
			(*p.do.Load())()
		}
		if at := p.stop.Load(); at != nil && strings.HasSuffix(r.URL.Path, at.end) && p.stop.CompareAndSwap(at, nil) {
			close(at.reached)
			<-at.goes
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

// before has a function called before a request, counted from now.
func (p *proxy) before(request int64, do func()) {
	p.do.Store(&do)
	p.count.Store(0)
	p.at.Store(request)
}

// bulk has an import of a project of the own server waiting, and returns its entity.
func (st *fixture) bulk(p *proxy, from, slug string) (*transfer.BulkImport, *transfer.Entity) {
	t, ctx := st.t, st.t.Context()
	t.Helper()
	b := must(st.Transfer.StartBulkImport(ctx, st.by, transfer.NewBulkImport{
		URL: p.URL, Token: apptest.RootToken, Entities: []transfer.NewEntity{{Project: true, SourcePath: from, Slug: slug, Namespace: "alice", Members: true}},
	}))(t)
	page := must(st.Transfer.BulkEntities(ctx, st.by, b.ID, transfer.BulkFilter{}, db.Paging{Limit: 10}))(t)
	return b, page.Items[0]
}

// takeFile imports the newest file.
func (st *fixture) takeFile() {
	t, ctx := st.t, st.t.Context()
	t.Helper()
	page := must(st.Transfer.ProjectImports(ctx, st.by, db.Paging{Limit: 1}))(t)
	must(0, st.Transfer.RunProjectImport(ctx, transfer.ProjectImportWork{ImportID: page.Items[0].ID}))(t)
}

func (st *fixture) lookEntity(e *transfer.Entity) *transfer.Entity {
	st.t.Helper()
	return must(st.Transfer.BulkEntity(st.t.Context(), st.by, e.ImportID, e.ID))(st.t)
}

// TestBulkInterrupted stops an import from another server at several requests, as the
// end of the process would: the next run goes on, and nothing is lost or doubled.
func TestBulkInterrupted(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		st, ctx := newFixture(t, s), t.Context()
		st.buildProject("from", 45)
		calls := []apptest.Call{{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200, JSON: `{"allow_local_requests_from_web_hooks_and_services":true}`}}
		for n := range 45 {
			calls = append(calls, apptest.Call{Do: fmt.Sprintf("POST /projects/alice%%2Ffrom/issues/%d/notes", n+1), As: apptest.RootToken, JSON: fmt.Sprintf(`{"body":"note %d"}`, n+1), Status: 201})
		}
		s.Table(t, calls)
		source := newProxy(t, s)
		parts := func(path string) string {
			t.Helper()
			var text strings.Builder
			for _, e := range unpackWhole(t, st.exportProject(project.Ref("alice/"+path))) {
				if e[0] == "project/issues.ndjson" || e[0] == "project/notes.ndjson" || e[0] == "project/users.ndjson" {
					text.WriteString(e[0] + "\n" + e[1])
				}
			}
			return times.ReplaceAllString(text.String(), "") // the API has milliseconds
		}
		want := parts("from")
		if strings.Count(want, `"body":"note `) != 45 {
			t.Fatalf("the source has %s", want)
		}
		_, e := st.bulk(source, "alice/from", "copy")
		work := transfer.BulkImportWork{EntityID: e.ID}
		phases := map[string]bool{}
		for _, request := range []int64{1, 4, 9, 15, 40, 150, 250} {
			within, cancel := context.WithCancel(ctx)
			source.before(request, cancel)
			if err := s.Transfer.RunBulkImport(within, work); !errors.Is(err, context.Canceled) {
				t.Fatalf("interrupted at request %d: %v", request, err)
			}
			cancel()
			now := st.lookEntity(e)
			if now.State != transfer.Started {
				t.Fatalf("interrupted at request %d it is %+v", request, now)
			}
			phases[now.Phase] = true
		}
		if len(phases) < 3 {
			t.Errorf("it was interrupted in %v only", phases)
		}
		source.before(-1, nil)
		must(0, s.Transfer.RunBulkImport(ctx, work))(t)
		requests := source.count.Load()
		must(0, s.Transfer.RunBulkImport(ctx, work))(t)
		if source.count.Load() != requests {
			t.Error("a run after the last step reads the source again")
		}
		if _, err := s.Projects.Get(ctx, st.by, "alice/copy"); !errs.Is(err, errs.KindNotFound) {
			t.Errorf("the project is there before it is complete: %v", err)
		}
		st.takeFile()
		now := st.lookEntity(e)
		if now.State != transfer.Finished || now.ProjectID == nil || now.Stats["issues"] != (transfer.Stat{Source: 45, Fetched: 45, Imported: 45}) {
			t.Fatalf("in the end it is %+v", now)
		}
		if got := parts("copy"); got != want {
			t.Errorf("the copy differs: %d and %d lines", strings.Count(got, "\n"), strings.Count(want, "\n"))
			for _, line := range strings.Split(got, "\n") {
				if !strings.Contains(want, line) {
					t.Errorf("it has %s", line)
				}
			}
		}
		for _, key := range []string{"from", "copy"} { // the exports of this test
			p := must(s.Projects.Get(ctx, st.by, project.Ref("alice/"+key)))(t)
			must(s.DB.ExecContext(ctx, `DELETE FROM project_exports WHERE project_id = ?`, p.ID))(t)
		}
		for object, err := range s.Blobs.List(ctx, "transfer/") {
			must(0, err)(t)
			if !strings.Contains(object.Key, "exports") {
				t.Errorf("%s is left", object.Key)
			}
		}

		// One that is canceled while it is read leaves nothing.
		b, e := st.bulk(source, "alice/from", "canceled")
		source.before(60, func() { must(st.Transfer.CancelBulkImport(ctx, st.by, b.ID))(t) })
		must(0, s.Transfer.RunBulkImport(ctx, transfer.BulkImportWork{EntityID: e.ID}))(t)
		if now := st.lookEntity(e); now.State != transfer.Canceled {
			t.Errorf("a canceled one is %+v", now)
		}
		if now := must(st.Transfer.BulkImport(ctx, st.by, b.ID))(t); now.State != transfer.Canceled {
			t.Errorf("a canceled one is %+v", now)
		}
		// So does one that is canceled while its file is imported.
		b, e = st.bulk(source, "alice/from", "late")
		source.before(-1, nil)
		must(0, s.Transfer.RunBulkImport(ctx, transfer.BulkImportWork{EntityID: e.ID}))(t)
		must(st.Transfer.CancelBulkImport(ctx, st.by, b.ID))(t)
		st.takeFile()
		if _, err := s.Projects.Get(ctx, st.by, "alice/late"); !errs.Is(err, errs.KindNotFound) {
			t.Errorf("a canceled one is there: %v", err)
		}
		s.Clock.Move(2 * time.Hour)
		must(0, s.Transfer.Sweep(ctx))(t)
		for object, err := range s.Blobs.List(ctx, "transfer/bulk_imports/") {
			must(0, err)(t)
			t.Errorf("%s is left", object.Key)
		}
		var tokens int
		must(0, s.DB.QueryRowContext(ctx, `SELECT count(*) FROM bulk_imports WHERE token <> ''`).Scan(&tokens))(t)
		if tokens != 0 {
			t.Errorf("%d tokens are left", tokens)
		}
		// A source that fails again and again ends the import, with the reason.
		b, e = st.bulk(source, "alice/missing", "never")
		must(0, s.Transfer.RunBulkImport(ctx, transfer.BulkImportWork{EntityID: e.ID}))(t)
		failures := must(st.Transfer.BulkEntityFailures(ctx, st.by, b.ID, e.ID, db.Paging{Limit: 10}))(t).Items
		if now = st.lookEntity(e); now.State != transfer.Failed || len(failures) != 1 || !strings.Contains(failures[0].Message, "HTTP 404") {
			t.Errorf("a missing project is %+v, %+v", now, failures)
		}
	})
}

// TestBulkTakenOver has a run of an import stall in a step, as if its node were suspended,
// while another run takes the import over. Neither what the first one stores later nor its
// failure changes the import.
func TestBulkTakenOver(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		st, ctx := newFixture(t, s), t.Context()
		st.buildProject("from", 3)
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200, JSON: `{"allow_local_requests_from_web_hooks_and_services":true}`})
		source := newProxy(t, s)
		_, e := st.bulk(source, "alice/from", "copy")
		// run starts a run and waits until it stops at a request.
		run := func(end string) (goes chan struct{}, ended chan error) {
			t.Helper()
			at := &stop{end, make(chan struct{}), make(chan struct{})}
			source.stop.Store(at)
			ended = make(chan error, 1)
			go func() { ended <- s.Transfer.RunBulkImport(ctx, transfer.BulkImportWork{EntityID: e.ID}) }()
			select {
			case <-at.reached:
			case err := <-ended:
				t.Fatalf("the run ended before %s: %v", end, err)
			}
			return at.goes, ended
		}
		first, firstEnded := run("/issues")
		second, secondEnded := run("/merge_requests")
		s.Check(t, apptest.Call{Do: "PUT /projects/alice%2Ffrom/issues/1", As: apptest.RootToken, JSON: `{"title":"Changed"}`, Status: 200})
		close(first)
		must(0, <-firstEnded)(t)
		if now := st.lookEntity(e); now.State != transfer.Started || now.Phase != "merge_requests" {
			t.Errorf("after the first run it is %+v", now)
		}
		close(second)
		must(0, <-secondEnded)(t)
		st.takeFile()
		if now := st.lookEntity(e); now.State != transfer.Finished {
			t.Fatalf("in the end it is %+v", now)
		}
		s.Check(t, apptest.Call{Do: "GET /projects/alice%2Fcopy/issues/1", As: apptest.RootToken, Status: 200, Want: `{"title":"Issue 1 of many"}`})
		for object, err := range s.Blobs.List(ctx, "transfer/bulk_imports/") {
			must(0, err)(t)
			t.Errorf("%s is left", object.Key)
		}
	})
}

// TestBulkCancelCutOff cancels an import by a request that breaks off when that is in
// the database: nothing of the import appears later.
func TestBulkCancelCutOff(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		st, ctx := newFixture(t, s), t.Context()
		st.buildProject("from", 1)
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200, JSON: `{"allow_local_requests_from_web_hooks_and_services":true}`})
		b, e := st.bulk(newProxy(t, s), "alice/from", "late")
		must(0, s.Transfer.RunBulkImport(ctx, transfer.BulkImportWork{EntityID: e.ID}))(t)
		if now := st.lookEntity(e); now.Phase != "importing" {
			t.Fatalf("before it is canceled it is %+v", now)
		}
		request, breakOff := context.WithCancel(ctx)
		defer breakOff()
		broken := make(chan struct{})
		go func() {
			defer close(broken)
			for state := ""; state != string(transfer.Canceled) && request.Err() == nil; {
				if err := s.DB.QueryRowContext(ctx, `SELECT state FROM bulk_imports WHERE id = ?`, b.ID).Scan(&state); err != nil {
					t.Error(err)
					return
				}
			}
			breakOff()
		}()
		if _, err := st.Transfer.CancelBulkImport(request, st.by, b.ID); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		breakOff() // if it has failed
		<-broken
		if now := must(st.Transfer.BulkImport(ctx, st.by, b.ID))(t); now.State != transfer.Canceled {
			t.Errorf("the import is %+v", now)
		}
		st.takeFile()
		if _, err := s.Projects.Get(ctx, st.by, "alice/late"); !errs.Is(err, errs.KindNotFound) {
			t.Errorf("the project of a canceled import is there: %v", err)
		}
		// Its path is free, and its files go.
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/user/%d", st.by.ID), As: apptest.RootToken, JSON: `{"name":"late"}`, Status: 201, Want: `{"path_with_namespace":"alice/late"}`})
		s.Clock.Move(2 * time.Hour)
		must(0, s.Transfer.Sweep(ctx))(t)
		for object, err := range s.Blobs.List(ctx, "transfer/bulk_imports/") {
			must(0, err)(t)
			t.Errorf("%s is left", object.Key)
		}
	})
}

// TestBulkTooLarge imports a project whose repositories have more data than may be
// stored: the import fails, and nothing of it is kept.
func TestBulkTooLarge(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		st, ctx := newFixture(t, s), t.Context()
		st.buildProject("from", 1)
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200, JSON: `{"allow_local_requests_from_web_hooks_and_services":true}`})
		s.Transfer.Limits.Staged = 100
		b, e := st.bulk(newProxy(t, s), "alice/from", "copy")
		must(0, s.Transfer.RunBulkImport(ctx, transfer.BulkImportWork{EntityID: e.ID}))(t)
		if now := st.lookEntity(e); now.State != transfer.Failed || now.Failures != 1 {
			t.Errorf("the import is %+v", now)
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /bulk_imports/%d/entities/%d/failures", b.ID, e.ID), As: apptest.RootToken, Status: 200,
			Want: `[{"exception_message":"The repositories and files of a group or project may have 0 MiB in total. The source has more."}]`})
		for o, err := range s.Blobs.List(ctx, "transfer/bulk_imports/") {
			t.Errorf("%v is kept: %v", o, err)
		}
	})
}
