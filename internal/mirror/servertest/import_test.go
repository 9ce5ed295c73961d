package servertest

import (
	"net/url"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/user"
	"svc/internal/waittest"
)

// importState is the import of a project as the API represents it.
type importState struct {
	Status    string  `json:"import_status"`
	Error     *string `json:"import_error"`
	PublicKey *string `json:"public_key"`
	Progress  *struct{ Phase string }
}

func (m mirrorTester) importState(t *testing.T, name string) importState {
	t.Helper()
	var now importState
	m.Check(t, apptest.Call{Do: "GET /projects/alice%2F" + name + "/import", As: m.alice, Status: 200}).JSON(t, &now)
	return now
}

// TestImportOverSSH imports with an SSH key pair of the import. The user adds the
// public key to the source while the import waits for it.
func TestImportOverSSH(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		m := newMirrorTester(t, s)
		alice, err := s.Users.Find(t.Context(), actor.System(), "alice")
		if err != nil {
			t.Fatal(err)
		}
		by, err := s.Users.As(t.Context(), alice.ID)
		if err != nil {
			t.Fatal(err)
		}
		_, eve := s.User(t, "eve")
		address := "ssh://git@" + s.SSHAddr() + "/alice/source.git"
		keys, err := s.Mirrors.DetectSource(t.Context(), by, address)
		if err != nil || len(keys) == 0 {
			t.Fatal(keys, err)
		}
		create := func(name string) {
			t.Helper()
			m.Check(t, apptest.Call{Do: "POST /projects", As: m.alice, Status: 201, Want: `{"import_url":"` + address[:6] + address[10:] + `"}`,
				Form: url.Values{"name": {name}, "visibility": {"public"}, "import_url": {address}, "import_auth_method": {"ssh_public_key"}, "import_host_keys[]": keys}})
			waittest.For(t, "the import to need the key", func() bool {
				now := m.importState(t, name)
				return now.Progress != nil && now.Progress.Phase == "ssh_key"
			})
		}
		create("copy")
		key := m.importState(t, "copy").PublicKey
		if key == nil {
			t.Fatal("no public key")
		}
		m.Check(t, apptest.Call{Do: "GET " + copied + "/import", As: eve, Status: 200, Want: `{"public_key":null}`})
		if _, err := s.Users.AddKey(t.Context(), actor.System(), alice.ID, user.NewKey{Title: "k", Key: *key}); err != nil {
			t.Fatal(err)
		}
		m.ends(t, "copy", "finished", 11*time.Second)
		same(t, "over SSH", m.refs(t, "copy"), m.refs(t, "source"))
		m.Check(t, apptest.Call{Do: "GET " + copied + "/import", As: m.alice, Status: 200, Want: `{"public_key":null,"stats":{"imported":{"branch":1}}}`})

		// The import does not wait forever.
		create("never")
		m.ends(t, "never", "failed", 61*time.Minute)
		if now := m.importState(t, "never"); now.Error == nil || *now.Error != "The SSH server refused the credentials. Add the public key there, with access to the repository." {
			t.Errorf("%+v", now)
		}
		var kept int
		if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM project_imports WHERE credentials <> ''`).Scan(&kept); err != nil || kept != 0 {
			t.Errorf("%d sealed keys are kept: %v", kept, err)
		}
	}, apptest.SSH)
}

// ends waits for the end of an import that is retried after a pause. The pause may
// begin after the test has seen that the import waits for its key.
func (m mirrorTester) ends(t *testing.T, name, status string, pause time.Duration) {
	t.Helper()
	var now importState
	waittest.For(t, "the import to end", func() bool {
		if now = m.importState(t, name); now.Progress != nil && now.Progress.Phase == "ssh_key" {
			m.Clock.Move(pause)
		}
		return now.Status == "finished" || now.Status == "failed"
	})
	if now.Status != status {
		t.Fatalf("the import of %s: %s, %v", name, now.Status, now.Error)
	}
}
