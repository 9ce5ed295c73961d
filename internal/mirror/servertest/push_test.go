package servertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/db"
	"svc/internal/user"
	"svc/internal/waittest"
)

// mirrorState is a mirror as the API represents it.
type mirrorState struct {
	ID          int64
	URL         string
	Enabled     bool
	Status      string  `json:"update_status"`
	LastError   *string `json:"last_error"`
	StartedAt   *string `json:"last_update_started_at"`
	SucceededAt *string `json:"last_successful_update_at"`
	HostKeys    []struct {
		Fingerprint string `json:"fingerprint_sha256"`
	} `json:"host_keys"`
}

// mirrorTester mirrors the project alice/source to other projects on the same
// server.
type mirrorTester struct {
	*apptest.Server
	alice string
}

const source = "/projects/alice%2Fsource"

func newMirrorTester(t *testing.T, s *apptest.Server) mirrorTester {
	t.Helper()
	m := mirrorTester{Server: s}
	s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200, JSON: `{"allow_local_requests_from_web_hooks_and_services":true}`})
	_, m.alice = s.User(t, "alice")
	s.Check(t, apptest.Call{Do: "POST /projects", As: m.alice, Status: 201, JSON: `{"name":"source","initialize_with_readme":true}`})
	return m
}

// target creates an empty project that accepts force pushes, and returns its URL
// with credentials.
func (m mirrorTester) target(t *testing.T, name string) string {
	t.Helper()
	m.Check(t, apptest.Call{Do: "POST /projects", As: m.alice, Status: 201, JSON: `{"name":"` + name + `"}`})
	return strings.Replace(m.URL, "://", "://alice:"+m.alice+"@", 1) + "/alice/" + name + ".git"
}

// create adds an enabled push mirror.
func (m mirrorTester) create(t *testing.T, form url.Values) mirrorState {
	t.Helper()
	form.Set("enabled", "true")
	var made mirrorState
	m.Check(t, apptest.Call{Do: "POST " + source + "/remote_mirrors", As: m.alice, Form: form, Status: 201}).JSON(t, &made)
	return made
}

func (m mirrorTester) get(t *testing.T, id int64) mirrorState {
	t.Helper()
	var now mirrorState
	m.Check(t, apptest.Call{Do: fmt.Sprintf("GET %s/remote_mirrors/%d", source, id), As: m.alice, Status: 200}).JSON(t, &now)
	return now
}

// wait waits for the end of the update that follows the state before.
func (m mirrorTester) wait(t *testing.T, id int64, before mirrorState) mirrorState {
	t.Helper()
	var now mirrorState
	waittest.For(t, "the update of the mirror", func() bool {
		now = m.get(t, id)
		started := now.StartedAt != nil && (before.StartedAt == nil || *now.StartedAt != *before.StartedAt)
		return started && now.Status != "scheduled" && now.Status != "started"
	})
	return now
}

// later moves the clock and starts the updates that are due then.
func (m mirrorTester) later(t *testing.T, d time.Duration) {
	t.Helper()
	m.Clock.Move(d)
	if err := m.Mirrors.UpdateDue(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// sync starts an update of a mirror and waits for its end.
func (m mirrorTester) sync(t *testing.T, id int64) mirrorState {
	t.Helper()
	before := m.get(t, id)
	m.Check(t, apptest.Call{Do: fmt.Sprintf("POST %s/remote_mirrors/%d/sync", source, id), As: m.alice, Status: 204})
	return m.wait(t, id, before)
}

func (m mirrorTester) update(t *testing.T, id int64, form url.Values) {
	t.Helper()
	m.Check(t, apptest.Call{Do: fmt.Sprintf("PUT %s/remote_mirrors/%d", source, id), As: m.alice, Form: form, Status: 200})
}

// commit commits to a branch of a project of alice.
func (m mirrorTester) commit(t *testing.T, name, branch, start string) {
	t.Helper()
	form := url.Values{"branch": {branch}, "commit_message": {"change " + branch}, "actions[][action]": {"create"},
		"actions[][file_path]": {fmt.Sprintf("f%d", time.Now().UnixNano())}, "actions[][content]": {"x"}}
	if start != "" {
		form.Set("start_branch", start)
	}
	m.Check(t, apptest.Call{Do: "POST /projects/alice%2F" + name + "/repository/commits", As: m.alice, Form: form, Status: 201})
}

// refs returns the branches and tags of a project of alice, with their commits.
func (m mirrorTester) refs(t *testing.T, name string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, kind := range []string{"branches", "tags"} {
		var list []struct {
			Name   string
			Commit struct{ ID string }
		}
		m.Check(t, apptest.Call{Do: "GET /projects/alice%2F" + name + "/repository/" + kind + "?per_page=100", As: m.alice, Status: 200}).JSON(t, &list)
		for _, one := range list {
			found[kind+"/"+one.Name] = one.Commit.ID
		}
	}
	return found
}

func finished(t *testing.T, s mirrorState) {
	t.Helper()
	if s.Status != "finished" || s.LastError != nil || s.SucceededAt == nil {
		text, _ := json.Marshal(s)
		t.Fatalf("the mirror was not updated: %s", text)
	}
}

func failed(t *testing.T, s mirrorState, want string) {
	t.Helper()
	if s.Status != "failed" || s.LastError == nil || !strings.Contains(*s.LastError, want) {
		text, _ := json.Marshal(s)
		t.Fatalf("%s: want the error %q", text, want)
	}
}

func same(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
}

// TestPushMirror mirrors branches and tags to another project over HTTP.
func TestPushMirror(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		m := newMirrorTester(t, s)
		address := m.target(t, "target")
		m.commit(t, "source", "feature", "main")
		m.Check(t, apptest.Call{Do: "POST " + source + "/repository/tags", As: m.alice, Form: url.Values{"tag_name": {"v1"}, "ref": {"main"}, "message": {"one"}}, Status: 201})
		m.Check(t, apptest.Call{Do: "POST " + source + "/merge_requests", As: m.alice, Form: url.Values{"source_branch": {"feature"}, "target_branch": {"main"}, "title": {"t"}}, Status: 201})
		made := m.create(t, url.Values{"url": {address}})
		if !strings.Contains(made.URL, "://*****:*****@") || strings.Contains(made.URL, m.alice) {
			t.Errorf("the URL is %s", made.URL)
		}
		finished(t, m.wait(t, made.ID, mirrorState{}))
		same(t, "after the first update", m.refs(t, "target"), m.refs(t, "source"))

		// A push is mirrored, but not more often than every five minutes.
		before := m.get(t, made.ID)
		m.commit(t, "source", "main", "")
		if now := m.get(t, made.ID); now.Status != "scheduled" || *now.StartedAt != *before.StartedAt {
			t.Errorf("after a push: %s", now.Status)
		}
		m.later(t, 6*time.Minute)
		finished(t, m.wait(t, made.ID, before))
		same(t, "after a push", m.refs(t, "target"), m.refs(t, "source"))

		// Merged branches that are deleted in the source are deleted in the target;
		// others are kept.
		m.commit(t, "source", "unmerged", "main")
		m.Check(t, apptest.Call{Do: "POST " + source + "/repository/branches", As: m.alice, Form: url.Values{"branch": {"merged"}, "ref": {"main"}}, Status: 201})
		finished(t, m.sync(t, made.ID))
		want := m.refs(t, "source")
		same(t, "with more branches", m.refs(t, "target"), want)
		for _, branch := range []string{"merged", "unmerged"} {
			m.Check(t, apptest.Call{Do: "DELETE " + source + "/repository/branches/" + branch, As: m.alice, Status: 204})
		}
		finished(t, m.sync(t, made.ID))
		delete(want, "branches/merged")
		same(t, "after deletions", m.refs(t, "target"), want)

		// Diverged branches are skipped or overwritten.
		m.commit(t, "target", "feature", "")
		m.commit(t, "source", "feature", "")
		m.commit(t, "source", "main", "")
		m.update(t, made.ID, url.Values{"keep_divergent_refs": {"true"}})
		theirs := m.refs(t, "target")["branches/feature"]
		failed(t, m.sync(t, made.ID), "Some refs have diverged and were not updated: refs/heads/feature")
		if got, want := m.refs(t, "target"), m.refs(t, "source"); got["branches/feature"] != theirs || got["branches/main"] != want["branches/main"] {
			t.Errorf("kept: %v, want %v", got, want)
		}
		m.update(t, made.ID, url.Values{"keep_divergent_refs": {"false"}})
		finished(t, m.sync(t, made.ID))
		if got, want := m.refs(t, "target"), m.refs(t, "source"); got["branches/feature"] != want["branches/feature"] {
			t.Errorf("overwritten: %v, want %v", got, want)
		}

		m.Table(t, []apptest.Call{
			{Do: fmt.Sprintf("PUT %s/remote_mirrors/%d", source, made.ID), As: m.alice, Form: url.Values{"enabled": {"false"}}, Status: 200, Want: `{"enabled":false}`},
			{Name: "disabled", Do: fmt.Sprintf("POST %s/remote_mirrors/%d/sync", source, made.ID), As: m.alice, Status: 400},
			{Name: "no key", Do: fmt.Sprintf("GET %s/remote_mirrors/%d/public_key", source, made.ID), As: m.alice, Status: 404},
			{Name: "list", Do: "GET " + source + "/remote_mirrors", As: m.alice, Status: 200, Want: fmt.Sprintf(`[{"id":%d,"auth_method":"password","host_keys":[]}]`, made.ID)},
			{Do: fmt.Sprintf("DELETE %s/remote_mirrors/%d", source, made.ID), As: m.alice, Status: 204},
			{Name: "gone", Do: fmt.Sprintf("GET %s/remote_mirrors/%d", source, made.ID), As: m.alice, Status: 404},
		})
		m.noSecret(t, m.alice)
	})
}

// noSecret checks that a secret is not in the log or in audit events, and not in
// plain text in the database.
func (m mirrorTester) noSecret(t *testing.T, secret string) {
	t.Helper()
	if strings.Contains(m.Log(), secret) {
		t.Error("the log has the secret")
	}
	events := m.Check(t, apptest.Call{Do: "GET /audit_events?per_page=100", As: apptest.RootToken, Status: 200})
	if !strings.Contains(string(events.Body), "push_mirror_created") || strings.Contains(string(events.Body), secret) {
		t.Errorf("the audit events do not have the mirror, or have the secret: %s", events.Body)
	}
	rows, err := db.All(t.Context(), m.DB, db.Value[string], `SELECT secrets || url || last_error FROM mirrors`)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if strings.Contains(row, secret) {
			t.Error("a mirror has the secret")
		}
	}
}

// TestPushMirrorFilters mirrors only some branches.
func TestPushMirrorFilters(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		m := newMirrorTester(t, s)
		for _, branch := range []string{"release-1", "other"} {
			m.commit(t, "source", branch, "main")
		}
		all := m.refs(t, "source")
		protected := m.create(t, url.Values{"url": {m.target(t, "protected")}, "only_protected_branches": {"true"}})
		finished(t, m.wait(t, protected.ID, mirrorState{}))
		same(t, "protected", m.refs(t, "protected"), map[string]string{"branches/main": all["branches/main"]})
		matching := m.create(t, url.Values{"url": {m.target(t, "matching")}, "mirror_branch_regex": {"^release-"}})
		finished(t, m.wait(t, matching.ID, mirrorState{}))
		same(t, "matching", m.refs(t, "matching"), map[string]string{"branches/release-1": all["branches/release-1"]})
		at := "POST " + source + "/remote_mirrors"
		m.Table(t, []apptest.Call{
			{Name: "regex and protected", Do: at, As: m.alice, Form: url.Values{"url": {m.URL + "/a/b"}, "only_protected_branches": {"true"}, "mirror_branch_regex": {"x"}}, Status: 400},
			{Name: "bad regex", Do: at, As: m.alice, Form: url.Values{"url": {m.URL + "/a/b"}, "mirror_branch_regex": {"("}}, Status: 400},
			{Name: "no URL", Do: at, As: m.alice, Status: 400},
			{Name: "a file", Do: at, As: m.alice, Form: url.Values{"url": {"file:///etc"}}, Status: 400},
			{Name: "key without SSH", Do: at, As: m.alice, Form: url.Values{"url": {m.URL + "/a/b"}, "auth_method": {"ssh_public_key"}}, Status: 400},
			{Name: "bad host key", Do: at, As: m.alice, Form: url.Values{"url": {"ssh://git@example.org/a"}, "host_keys[]": {"nonsense"}}, Status: 400},
			{Name: "null regex", Do: fmt.Sprintf("PUT %s/remote_mirrors/%d", source, matching.ID), As: m.alice, JSON: `{"mirror_branch_regex":null}`, Status: 200, Want: `{"mirror_branch_regex":null}`},
		})
	})
}

// TestPushMirrorFails checks the errors of mirrors that cannot be updated.
func TestPushMirrorFails(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		m := newMirrorTester(t, s)
		m.target(t, "target")
		at := strings.TrimPrefix(m.URL, "http://")
		wrong := m.create(t, url.Values{"url": {"http://alice:not-the-password@" + at + "/alice/target.git"}})
		failed(t, m.wait(t, wrong.ID, mirrorState{}), "The server refused the credentials")
		m.noSecret(t, "not-the-password")
		missing := m.create(t, url.Values{"url": {"http://alice:" + m.alice + "@" + at + "/alice/nothing.git"}})
		if now := m.wait(t, missing.ID, mirrorState{}); now.Status != "failed" {
			t.Errorf("a missing repository: %s", now.Status)
		}
		// Temporary errors are retried.
		gone := httptest.NewServer(http.NotFoundHandler())
		gone.Close()
		retried := m.create(t, url.Values{"url": {gone.URL + "/a.git"}})
		if now := m.wait(t, retried.ID, mirrorState{}); now.Status != "to_retry" || now.LastError == nil || !strings.Contains(*now.LastError, "cannot be reached") {
			t.Errorf("an unreachable server: %+v", now)
		}
		before := m.get(t, retried.ID)
		m.later(t, 2*time.Minute)
		if now := m.wait(t, retried.ID, before); now.Status != "to_retry" {
			t.Errorf("the second attempt: %s", now.Status)
		}
		// Addresses of the local network are refused when they are saved and when
		// they are connected to.
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200, JSON: `{"allow_local_requests_from_web_hooks_and_services":false}`})
		failed(t, m.sync(t, wrong.ID), "local network")
		for _, address := range []string{"http://127.0.0.1/a.git", "ssh://git@[::1]/a.git", "git://10.0.0.1/a.git", "https://localhost/a.git"} {
			m.Check(t, apptest.Call{Do: "POST " + source + "/remote_mirrors", As: m.alice, Form: url.Values{"url": {address}}, Status: 400, Want: `{"message":{"url":["is blocked: requests to the local network are not allowed"]}}`})
		}
		m.Check(t, apptest.Call{Do: "POST " + source + "/archive", As: m.alice, Status: 201})
		m.Table(t, []apptest.Call{
			{Name: "archived", Do: "POST " + source + "/remote_mirrors", As: m.alice, Form: url.Values{"url": {"https://example.org/a.git"}}, Status: 403},
			{Name: "archived", Do: fmt.Sprintf("POST %s/remote_mirrors/%d/sync", source, wrong.ID), As: m.alice, Status: 403},
		})
		m.Check(t, apptest.Call{Do: "POST " + source + "/unarchive", As: m.alice, Status: 201})
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200, JSON: `{"mirror_available":false}`, Want: `{"mirror_available":false}`})
		m.Table(t, []apptest.Call{
			{Name: "not available", Do: "POST " + source + "/remote_mirrors", As: m.alice, Form: url.Values{"url": {"https://example.org/a.git"}}, Status: 403},
			{Name: "administrator", Do: "POST " + source + "/remote_mirrors", As: apptest.RootToken, Form: url.Values{"url": {"https://example.org/a.git"}}, Status: 201},
		})
	})
}

// TestPushMirrorOverSSH mirrors over SSH with the key of the mirror and a pinned
// host key.
func TestPushMirrorOverSSH(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		m := newMirrorTester(t, s)
		m.target(t, "target")
		address := "ssh://git@" + s.SSHAddr() + "/alice/target.git"
		made := m.create(t, url.Values{"url": {address}, "auth_method": {"ssh_public_key"}})
		failed(t, m.wait(t, made.ID, mirrorState{}), "The host keys of the SSH server are not known")
		keys, err := s.Mirrors.DetectHostKeys(t.Context(), actor.System(), "alice/source", address)
		if err != nil || len(keys) == 0 {
			t.Fatal(keys, err)
		}
		m.update(t, made.ID, url.Values{"host_keys[]": keys})
		failed(t, m.sync(t, made.ID), "The SSH server refused the credentials")
		var key struct {
			PublicKey string `json:"public_key"`
		}
		m.Check(t, apptest.Call{Do: fmt.Sprintf("GET %s/remote_mirrors/%d/public_key", source, made.ID), As: m.alice, Status: 200}).JSON(t, &key)
		alice, err := s.Users.Find(t.Context(), actor.System(), "alice")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Users.AddKey(t.Context(), actor.System(), alice.ID, user.NewKey{Title: "k", Key: key.PublicKey}); err != nil {
			t.Fatal(err)
		}
		finished(t, m.sync(t, made.ID))
		same(t, "over SSH", m.refs(t, "target"), m.refs(t, "source"))
		other := "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
		m.update(t, made.ID, url.Values{"host_keys[]": {other}})
		now := m.sync(t, made.ID)
		failed(t, now, "does not have one of the known host keys")
		if len(now.HostKeys) != 1 || !strings.HasPrefix(now.HostKeys[0].Fingerprint, "SHA256:") {
			t.Errorf("host keys: %+v", now.HostKeys)
		}
	}, apptest.SSH)
}

// TestPushMirrorAlone checks that two updates of a mirror run one after the other,
// that an interrupted update is retried, and that no process has the credentials in
// its arguments.
func TestPushMirrorAlone(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		m := newMirrorTester(t, s)
		m.target(t, "target")
		to, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		pass := httputil.NewSingleHostReverseProxy(to)
		var now, most, pushes atomic.Int32
		hold := make(chan struct{})
		between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer now.Add(-1)
			if r.Method == http.MethodPost {
				pushes.Add(1)
			}
			select {
			case <-hold:
			case <-r.Context().Done():
				return
			}
			pass.ServeHTTP(w, r)
		}))
		t.Cleanup(between.Close)
		made := m.create(t, url.Values{"url": {strings.Replace(between.URL, "://", "://alice:"+m.alice+"@", 1) + "/alice/target.git"}})
		waittest.For(t, "the update to connect", func() bool { return now.Load() == 1 })
		m.Check(t, apptest.Call{Do: fmt.Sprintf("POST %s/remote_mirrors/%d/sync", source, made.ID), As: m.alice, Status: 204})
		processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range processes {
			if line, err := os.ReadFile(name); err == nil && strings.Contains(string(line), m.alice) {
				t.Errorf("a process has the credentials in its arguments: %q", line)
			}
		}
		before := m.get(t, made.ID)
		close(hold)
		finished(t, m.wait(t, made.ID, before))
		if most.Load() != 1 || pushes.Load() != 1 {
			t.Errorf("%d updates at once, %d pushes", most.Load(), pushes.Load())
		}
		same(t, "after both", m.refs(t, "target"), m.refs(t, "source"))

		// A run whose process was killed keeps its lease until the lease expires.
		m.commit(t, "source", "main", "")
		if _, err := s.DB.ExecContext(t.Context(), `UPDATE mirrors SET status = 'started', run = 'killed', lease_until = ? WHERE id = ?`, s.Clock.Now().Add(time.Hour), made.ID); err != nil {
			t.Fatal(err)
		}
		before = m.get(t, made.ID)
		m.Check(t, apptest.Call{Do: fmt.Sprintf("POST %s/remote_mirrors/%d/sync", source, made.ID), As: m.alice, Status: 204})
		if now := m.get(t, made.ID); *now.StartedAt != *before.StartedAt {
			t.Error("the mirror was taken from another run")
		}
		s.Clock.Move(2 * time.Hour)
		finished(t, m.wait(t, made.ID, before))
		same(t, "after a crash", m.refs(t, "target"), m.refs(t, "source"))
	})
}
