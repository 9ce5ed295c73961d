package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/ci"
	"svc/internal/errs"
	"svc/internal/project"
)

// TestDebugLog checks that only Developers and above can read the log of a job with
// debug logging, live or packed.
func TestDebugLog(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "a: {script: [x], variables: {CI_DEBUG_TRACE: 'true'}}\nb: {script: [x]}\n")
		bobID, bob := s.User(t, "bob")
		_, carol := s.User(t, "carol")
		s.Check(t, apptest.Call{Do: "POST " + b.at("/members"), As: b.owner, JSON: `{"username":"bob","access_level":20}`, Status: 201})
		s.Check(t, apptest.Call{Do: "POST " + b.at("/members"), As: b.owner, JSON: `{"username":"carol","access_level":30}`, Status: 201})
		b.pipeline(b.project)
		for _, j := range []*assigned{b.run(), b.run()} {
			debug := j.JobInfo.Name == "a"
			patch := func(at int, text string) {
				t.Helper()
				r, err := http.NewRequestWithContext(t.Context(), "PATCH", fmt.Sprintf("%s/api/v4/jobs/%d/trace?debug_trace=%t", s.URL, j.ID, debug), strings.NewReader(text))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("JOB-TOKEN", j.Token)
				r.Header.Set("Content-Range", fmt.Sprintf("%d-%d", at, at+len(text)-1))
				if a := s.Exchange(t, r); a.Status != 202 {
					t.Fatalf("patch: %d %s", a.Status, a.Body)
				}
			}
			patch(0, "+ begin\n")
			refused := 200
			if debug {
				refused = 403
			}
			read := func(name string) {
				t.Helper()
				at := "GET " + b.at("/jobs/%d/trace", j.ID)
				s.Table(t, []apptest.Call{
					{Name: name + ": a Reporter", Do: at, As: bob, Status: refused},
					{Name: name + ": a Developer", Do: at, As: carol, Status: 200},
					{Name: name + ": an administrator", Do: at, As: root, Status: 200},
				})
				if debug && name != "live" { // if it were allowed, the request would last until the end of the log
					s.Check(t, apptest.Call{Name: name + ": as events", Do: at, As: bob, Header: map[string]string{"Accept": "text/event-stream"}, Status: 403})
				}
			}
			read("live")
			if !debug { // debug logging starts while a client follows the log
				pieces, end := make(chan string, 10), make(chan error, 1)
				ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
				defer stop()
				go func() {
					end <- s.CI.FollowLog(ctx, func(context.Context) (actor.Actor, error) { return actor.Actor{ID: bobID}, nil }, project.RefTo(b.project), j.ID, 0, func(p ci.LogPart) error {
						if len(p.Bytes) > 0 {
							pieces <- string(p.Bytes)
						}
						return nil
					})
				}()
				if got := <-pieces; got != "+ begin\n" {
					t.Errorf("first came %q", got)
				}
				debug, refused = true, 403
				patch(8, "++ export X=secret\n")
				if err := <-end; !errs.Is(err, errs.KindForbidden) || len(pieces) > 0 {
					t.Errorf("followed on: %v, %d pieces", err, len(pieces))
				}
			}
			b.update(j, 200, `{"state":"success"}`)
			b.putAway()
			read("put away")
		}
	})
}
