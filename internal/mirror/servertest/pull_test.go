package servertest

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/project"
	"svc/internal/user"
	"svc/internal/waittest"
)

const copied = "/projects/alice%2Fcopy"

// pulled waits for the end of the update of the pull mirror of alice/copy that
// follows the state before.
func (m mirrorTester) pulled(t *testing.T, before mirrorState) mirrorState {
	t.Helper()
	var now mirrorState
	waittest.For(t, "the update of the pull mirror", func() bool {
		now = mirrorState{}
		m.Check(t, apptest.Call{Do: "GET " + copied + "/mirror/pull", As: m.alice, Status: 200}).JSON(t, &now)
		started := now.StartedAt != nil && (before.StartedAt == nil || *now.StartedAt != *before.StartedAt)
		return started && now.Status != "scheduled" && now.Status != "started"
	})
	return now
}

// pull lets time pass and updates the pull mirror.
func (m mirrorTester) pull(t *testing.T) mirrorState {
	t.Helper()
	var before mirrorState
	m.Check(t, apptest.Call{Do: "GET " + copied + "/mirror/pull", As: m.alice, Status: 200}).JSON(t, &before)
	m.Clock.Move(6 * time.Minute)
	m.Check(t, apptest.Call{Do: "POST " + copied + "/mirror/pull", As: m.alice, Status: 202})
	return m.pulled(t, before)
}

func (m mirrorTester) set(t *testing.T, form url.Values) {
	t.Helper()
	m.Check(t, apptest.Call{Do: "PUT " + copied + "/mirror/pull", As: m.alice, Form: form, Status: 200})
}

// sourceURL is the URL of alice/source, without credentials.
func (m mirrorTester) sourceURL() string { return m.URL + "/alice/source.git" }

// TestPullMirror pulls branches and tags of another project over HTTP.
func TestPullMirror(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		m := newMirrorTester(t, s)
		m.target(t, "copy")
		m.commit(t, "source", "feature", "main")
		m.Check(t, apptest.Call{Do: "POST " + source + "/repository/tags", As: m.alice, Form: url.Values{"tag_name": {"v1"}, "ref": {"main"}, "message": {"one"}}, Status: 201})
		m.Check(t, apptest.Call{Do: "GET " + copied + "/mirror/pull", As: m.alice, Status: 404})
		made := m.Check(t, apptest.Call{Do: "PUT " + copied + "/mirror/pull", As: m.alice, Status: 200, Want: `{"enabled":true,"mirror_overwrites_diverged_branches":false}`,
			Form: url.Values{"enabled": {"true"}, "url": {m.sourceURL()}, "auth_user": {"alice"}, "auth_password": {m.alice}}})
		if strings.Contains(string(made.Body), m.alice) {
			t.Errorf("the password is shown: %s", made.Body)
		}
		first := m.pulled(t, mirrorState{})
		finished(t, first)
		same(t, "after the first update", m.refs(t, "copy"), m.refs(t, "source"))
		m.Table(t, []apptest.Call{
			{Name: "project", Do: "GET " + copied, As: m.alice, Status: 200, Want: `{"mirror":true,"import_status":"finished","default_branch":"main","mirror_trigger_builds":false,"import_url":"` + strings.Replace(m.sourceURL(), "://", "://*****:*****@", 1) + `"}`},
			{Name: "events", Do: "GET " + copied + "/events?action=pushed", As: m.alice, Status: 200, Want: `[{"author_username":"alice"},{"author_username":"alice"},{"author_username":"alice"}]`},
			{Name: "no pipelines", Do: "GET " + copied + "/pipelines", As: m.alice, Status: 200, Want: `[]`},
		})

		// A requested update runs at most every five minutes, a scheduled one after
		// half an hour.
		m.commit(t, "source", "main", "")
		m.Check(t, apptest.Call{Do: "POST " + copied + "/mirror/pull", As: m.alice, Status: 202})
		if now := m.refs(t, "copy"); now["branches/main"] == m.refs(t, "source")["branches/main"] {
			t.Error("the second update did not wait")
		}
		m.later(t, 6*time.Minute)
		second := m.pulled(t, first)
		finished(t, second)
		same(t, "after the second update", m.refs(t, "copy"), m.refs(t, "source"))
		m.commit(t, "source", "main", "")
		m.later(t, 36*time.Minute)
		finished(t, m.pulled(t, second))
		same(t, "on schedule", m.refs(t, "copy"), m.refs(t, "source"))

		// Refs that are deleted in the source are kept in the copy; refs that are
		// deleted in the copy are created again.
		want := m.refs(t, "source")
		m.Check(t, apptest.Call{Do: "DELETE " + source + "/repository/branches/feature", As: m.alice, Status: 204})
		m.Check(t, apptest.Call{Do: "DELETE " + copied + "/repository/tags/v1", As: m.alice, Status: 204})
		finished(t, m.pull(t))
		same(t, "after deletions", m.refs(t, "copy"), want)

		// Diverged branches are skipped or overwritten.
		m.commit(t, "copy", "main", "")
		m.commit(t, "source", "main", "")
		m.commit(t, "source", "other", "main")
		ours := m.refs(t, "copy")["branches/main"]
		failed(t, m.pull(t), "Some refs have diverged and were not updated: refs/heads/main")
		if got, want := m.refs(t, "copy"), m.refs(t, "source"); got["branches/main"] != ours || got["branches/other"] != want["branches/other"] {
			t.Errorf("kept: %v, want %v", got, want)
		}
		m.set(t, url.Values{"mirror_overwrites_diverged_branches": {"true"}})
		finished(t, m.pull(t))
		if got, want := m.refs(t, "copy"), m.refs(t, "source"); got["branches/main"] != want["branches/main"] {
			t.Errorf("overwritten: %v, want %v", got, want)
		}

		// Filter branches by a regular expression.
		m.commit(t, "source", "release-1", "main")
		m.commit(t, "source", "other", "")
		m.set(t, url.Values{"mirror_branch_regex": {"^release-"}})
		finished(t, m.pull(t))
		if got, want := m.refs(t, "copy"), m.refs(t, "source"); got["branches/release-1"] != want["branches/release-1"] || got["branches/other"] == want["branches/other"] {
			t.Errorf("filtered: %v, want %v", got, want)
		}

		// Pipelines.
		m.set(t, url.Values{"mirror_branch_regex": {""}, "mirror_trigger_builds": {"true"}})
		m.Check(t, apptest.Call{Do: "POST " + source + "/repository/files/.gitlab-ci.yml", As: m.alice, Status: 201,
			Form: url.Values{"branch": {"main"}, "commit_message": {"ci"}, "content": {"a: {script: [x]}"}}})
		finished(t, m.pull(t))
		waittest.For(t, "a pipeline", func() bool {
			var list []struct{ Ref string }
			m.Check(t, apptest.Call{Do: "GET " + copied + "/pipelines", As: m.alice, Status: 200}).JSON(t, &list)
			return len(list) > 0
		})
		m.Table(t, []apptest.Call{
			{Do: "PUT " + copied + "/mirror/pull", As: m.alice, Form: url.Values{"enabled": {"false"}}, Status: 200, Want: `{"enabled":false}`},
			{Do: "POST " + copied + "/mirror/pull", As: m.alice, Status: 400},
			{Do: "GET " + copied, As: m.alice, Status: 200, Want: `{"mirror":false}`},
		})
		if strings.Contains(s.Log(), m.alice) {
			t.Error("the log has the password")
		}
	})
}

// TestPullMirrorFails checks that a pull mirror that keeps failing is no longer
// updated.
func TestPullMirrorFails(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		m := newMirrorTester(t, s)
		m.target(t, "copy")
		m.set(t, url.Values{"enabled": {"true"}, "url": {m.sourceURL()}, "auth_user": {"alice"}, "auth_password": {"not-the-password"}})
		now := m.pulled(t, mirrorState{})
		failed(t, now, "credentials")
		for range 13 {
			before := now
			m.later(t, 9*time.Hour)
			now = m.pulled(t, before)
		}
		p, err := s.Mirrors.PullMirror(t.Context(), actor.System(), project.Ref("alice/copy"))
		if err != nil || !p.HardFailed() {
			t.Fatalf("after 14 failures: %+v, %v", p, err)
		}
		m.set(t, url.Values{"auth_password": {m.alice}})
		m.later(t, 48*time.Hour)
		m.Check(t, apptest.Call{Do: "GET " + copied + "/mirror/pull", As: m.alice, Status: 200, Want: `{"update_status":"failed"}`})
		finished(t, m.pull(t))
		if strings.Contains(s.Log(), "not-the-password") {
			t.Error("the log has the password")
		}
	})
}

// TestProjectMirror sets up pull mirrors with the project API.
func TestProjectMirror(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		m := newMirrorTester(t, s)
		address := strings.Replace(m.sourceURL(), "://", "://alice:"+m.alice+"@", 1)
		m.Table(t, []apptest.Call{
			{Name: "no URL", Do: "POST /projects", As: m.alice, Form: url.Values{"name": {"copy"}, "mirror": {"true"}}, Status: 400},
			{Do: "POST /projects", As: m.alice, Form: url.Values{"name": {"copy"}, "mirror": {"true"}, "import_url": {address}, "mirror_trigger_builds": {"true"}}, Status: 201,
				Want: `{"mirror":true,"mirror_trigger_builds":true}`},
		})
		waittest.For(t, "the import", func() bool {
			p, err := s.Projects.Get(t.Context(), actor.System(), "alice/copy")
			return err == nil && p.Import == project.ImportFinished
		})
		m.commit(t, "source", "more", "main")
		m.later(t, 36*time.Minute)
		finished(t, m.pulled(t, mirrorState{}))
		same(t, "after the update", m.refs(t, "copy"), m.refs(t, "source"))
		m.Table(t, []apptest.Call{
			{Do: "PUT " + copied, As: m.alice, Form: url.Values{"mirror": {"false"}}, Status: 200, Want: `{"mirror":false}`},
			{Do: "PUT " + copied, As: m.alice, Form: url.Values{"mirror": {"true"}, "import_url": {address}, "only_mirror_protected_branches": {"true"}}, Status: 200,
				Want: `{"mirror":true,"only_mirror_protected_branches":true}`},
			{Name: "not a mirror", Do: "PUT " + source, As: m.alice, Form: url.Values{"mirror": {"true"}}, Status: 400},
		})
	})
}

// TestPullMirrorOverSSH pulls with the SSH key of the mirror.
func TestPullMirrorOverSSH(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		m := newMirrorTester(t, s)
		m.target(t, "copy")
		address := "ssh://git@" + s.SSHAddr() + "/alice/source.git"
		keys, err := s.Mirrors.DetectHostKeys(t.Context(), actor.System(), "alice/copy", address)
		if err != nil {
			t.Fatal(err)
		}
		m.set(t, url.Values{"enabled": {"true"}, "url": {address}, "auth_method": {"ssh_public_key"}, "host_keys[]": keys})
		failed(t, m.pulled(t, mirrorState{}), "The SSH server refused the credentials")
		made, err := s.Mirrors.PullMirror(t.Context(), actor.System(), "alice/copy")
		if err != nil {
			t.Fatal(err)
		}
		alice, err := s.Users.Find(t.Context(), actor.System(), "alice")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Users.AddKey(t.Context(), actor.System(), alice.ID, user.NewKey{Title: "k", Key: made.PublicKey}); err != nil {
			t.Fatal(err)
		}
		finished(t, m.pull(t))
		m.commit(t, "source", "more", "main")
		finished(t, m.pull(t))
		same(t, "over SSH", m.refs(t, "copy"), m.refs(t, "source"))
	}, apptest.SSH)
}

// TestPullMirrorSize checks that a pull mirror does not make a repository exceed its
// size limit.
func TestPullMirrorSize(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		m := newMirrorTester(t, s)
		m.target(t, "copy")
		limit := func(megabytes int) {
			t.Helper()
			m.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200, JSON: fmt.Sprintf(`{"repository_size_limit":%d}`, megabytes)})
		}
		grow := func(name string) {
			t.Helper()
			content := make([]byte, 800<<10)
			_, _ = rand.Read(content) // never fails
			limit(0)
			m.Check(t, apptest.Call{Do: "POST " + source + "/repository/files/" + name, As: m.alice, Status: 201,
				JSON: fmt.Sprintf(`{"branch":"main","commit_message":"grow","encoding":"base64","content":%q}`, base64.StdEncoding.EncodeToString(content))})
			if err := s.Queue.Idle(t.Context()); err != nil { // sizes are measured
				t.Fatal(err)
			}
			limit(1)
		}
		grow("one")
		m.set(t, url.Values{"enabled": {"true"}, "url": {m.sourceURL()}, "auth_user": {"alice"}, "auth_password": {m.alice}})
		finished(t, m.pulled(t, mirrorState{}))
		grow("two")
		failed(t, m.pull(t), "exceeds the maximum size")
		limit(0)
		finished(t, m.pull(t))
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		limit(1)
		finished(t, m.pull(t)) // there is nothing to receive
		grow("three")
		failed(t, m.pull(t), "The repository has reached its size limit of 1 MB.")
	})
}
