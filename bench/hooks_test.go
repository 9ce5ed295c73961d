package bench

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/git/gittest"
)

const (
	hookBurst  = 10_000
	hookPushes = 30
	// hookLimit is for machines on which deliveries and git share the processors.
	hookLimit = 3
)

// BenchmarkHooks compares pushes during a burst of webhook deliveries with the same
// pushes before it. The project with the pushes has a webhook, too.
func BenchmarkHooks(b *testing.B) {
	t := &table{}
	b.Run("pushes beside a burst", func(b *testing.B) { pushBesideHooks(b, t) })
	t.finish(b)
}

func pushBesideHooks(b *testing.B, t *table) {
	g := gittest.New(b)
	g.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "a.txt", Content: "a"}}})
	p := newPushed(b, g)
	s := p.server
	var got atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.Add(1) }))
	b.Cleanup(receiver.Close)
	loud := newNamedSite(b, s.Addr(), "loud")
	work := filepath.Join(b.TempDir(), "work")
	gittest.Run(b, "", "clone", "-q", p.remote(), work)
	n := 0
	push := func() float64 {
		n++
		gittest.Run(b, work, "commit", "-q", "--allow-empty", "-m", fmt.Sprint("change ", n))
		began := time.Now()
		gittest.Run(b, work, "push", "-q", p.remote(), "HEAD:refs/heads/side")
		return time.Since(began).Seconds() * 1e3
	}
	push()
	var before, beside []float64
	for range hookPushes {
		before = append(before, push())
	}
	check(b, p.configure(`{"allow_local_requests_from_web_hooks_and_services":true}`))
	for _, at := range []site{p.site, loud} {
		var made struct{ ID int64 }
		check(b, at.post(fmt.Sprintf("projects/%d/hooks", at.project), `{"url":"`+receiver.URL+`/x","push_events":true}`, &made))
	}
	fillDeliveries(b, p, loud.project)
	start := got.Load()
	check(b, s.Hooks.Sweep(b.Context()))
	for range hookPushes {
		if took := push(); got.Load()-start < hookBurst {
			beside = append(beside, took)
		}
	}
	if len(beside) < hookPushes/3 {
		b.Fatalf("only %d pushes were during the burst", len(beside))
	}
	t.add(b, figure{
		name: fmt.Sprintf("push beside %d deliveries", hookBurst), measured: median(beside) / median(before), limit: hookLimit, unit: "of one before",
		note: fmt.Sprintf("%.0f of %.0f ms, %d deliveries meanwhile", median(beside), median(before), got.Load()-start),
	})
}

// fillDeliveries stores pending deliveries of the webhook of a project.
func fillDeliveries(b testing.TB, p *pushed, projectID int64) {
	b.Helper()
	d, payload := p.server.DB, `{"object_kind":"push","text":"`+strings.Repeat("x", 3000)+`"}`
	var hookID, eventID int64
	check(b, d.QueryRowContext(b.Context(), `SELECT id FROM hooks WHERE project_id = ?`, projectID).Scan(&hookID))
	check(b, d.QueryRowContext(b.Context(), `
		INSERT INTO hook_events (uuid, trigger, header, payload, created_at) VALUES ('burst', 'push_events', 'Push Hook', ?, ?) RETURNING id`, payload, time.Now()).Scan(&eventID))
	_, err := d.ExecContext(b.Context(), `
		INSERT INTO hook_deliveries (hook_id, event_id, waiting, key, created_at)
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT ?, ?, TRUE, 'key-' || i, ? FROM n`, hookBurst, hookID, eventID, time.Now())
	check(b, err)
	_, err = d.ExecContext(b.Context(), `UPDATE hook_states SET due_at = 0 WHERE hook_id = ?`, hookID)
	check(b, err)
}
