package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"svc/internal/app/apptest"
)

// TestHookPages tests, resends and changes a webhook on its pages.
func TestHookPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		var status atomic.Int64
		status.Store(200)
		tokens := make(chan string, 20)
		receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			tokens <- r.Header.Get("X-Gitlab-Token") + "/" + strings.SplitN(r.Header.Get("Webhook-Signature"), ",", 2)[0]
			w.WriteHeader(int(status.Load()))
		}))
		defer receiver.Close()
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200, JSON: `{"allow_local_requests_from_web_hooks_and_services":true}`})
		s.Check(t, apptest.Call{Do: "POST /projects", As: apptest.RootToken, JSON: `{"name":"p","initialize_with_readme":true}`, Status: 201})
		b := newBrowser(t, s)
		b.signIn("root", apptest.RootPassword)
		const at = "/root/p/-/settings/hooks"
		b.get(at).want(200).not("Leave it empty to keep", "Remove the s")
		b.submit(at, at, "url", receiver.URL, "push_events", "1", "branch_filter_strategy", "all_branches", "token", "t0k",
			"signing_token", "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3").leads(at)
		one := at + "/1"
		send := func(want string) {
			t.Helper()
			b.submit(one, one+"/test", "trigger", "push_events").leads(one)
			if got := <-tokens; got != want {
				t.Errorf("sent %q, want %q", got, want)
			}
		}
		send("t0k/v1")
		change := []string{"url", receiver.URL, "push_events", "1", "branch_filter_strategy", "all_branches"}
		b.submit(one, one, change...).leads(one)
		send("t0k/v1")
		b.submit(one, one, slices.Concat(change, []string{"remove_token", "1"})...).leads(one)
		send("/v1")
		b.submit(one, one, slices.Concat(change, []string{"remove_signing_token", "1"})...).leads(one)
		send("/")
		b.get(one).want(200).not("Leave it empty to keep", "Remove the s")
		status.Store(500)
		event := fmt.Sprintf("%s/events/%d", one, 1)
		b.submit(event, event+"/resend").leads(one)
		b.get(one).want(200, "The request was sent again, and failed: HTTP 500.")
		b.submit(one, one+"/test", "trigger", "push_events").leads(one)
		b.get(one).want(200, "Too many test requests were sent.")
	})
}
