package web_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/lfs"
	"svc/internal/project"
)

// TestLFSPages checks that files that are stored with Git LFS are shown with their
// content.
func TestLFSPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		aliceID, alice := s.User(t, "alice")
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: `{"name":"p","visibility":"public","initialize_with_readme":true}`, Status: 201})
		add := func(path, method, content string) {
			t.Helper()
			p, err := s.Projects.Require(t.Context(), actor.System(), "alice/p", project.NoAccess)
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256([]byte(content))
			o := lfs.Pointer{OID: hex.EncodeToString(sum[:]), Size: int64(len(content))}
			if err := s.LFS.Put(t.Context(), p, o, strings.NewReader(content)); err != nil {
				t.Fatal(err)
			}
			s.Check(t, apptest.Call{Do: method + " /projects/alice%2Fp/repository/files/" + path, As: alice, Status: map[string]int{"POST": 201, "PUT": 200}[method],
				JSON: fmt.Sprintf(`{"branch":"main","commit_message":"%s %s","content":"version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n"}`, method, path, o.OID, o.Size)})
		}
		add("sound.bin", "POST", "<html>a large file</html>")
		add("photo.png", "POST", "not quite a picture")
		add("sound.bin", "PUT", strings.Repeat("x", 3000))
		b := newBrowser(t, s)
		b.get("/alice/p/-/blob/main/sound.bin").want(200, "Stored with Git LFS", ">LFS</span> 2.9 KiB").not("oid sha256", "/-/edit/", "/-/blame/")
		b.get("/alice/p/-/blob/main/photo.png").want(200, `<img src="/alice/p/-/raw/main/photo.png"`, ">LFS</span> 19 bytes")
		raw := b.get("/alice/p/-/raw/main/sound.bin")
		if raw.body != strings.Repeat("x", 3000) || !strings.HasPrefix(raw.header.Get("Content-Disposition"), "attachment") || !strings.Contains(raw.header.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("raw: %.50q %v", raw.body, raw.header)
		}
		if photo := b.get("/alice/p/-/raw/main/photo.png"); photo.body != "not quite a picture" || photo.header.Get("Content-Type") != "image/png" {
			t.Errorf("raw image: %.50q %v", photo.body, photo.header)
		}
		b.get("/alice/p/-/commit/main").want(200, ">LFS</span>", "Stored with Git LFS. Size: 25 bytes → 2.9 KiB.").not("oid sha256")

		// Where LFS is disabled, the pointer is shown as text.
		b.get("/alice/p/-/path_locks").want(200, "No locked files").not("git lfs lock")
		b.signIn("alice", "a good password")
		b.get("/alice/p/-/path_locks").want(200, "No locked files", "git lfs lock")
		by, err := s.Users.As(t.Context(), aliceID)
		if err != nil {
			t.Fatal(err)
		}
		in, err := s.LFS.Project(t.Context(), by, "alice/p", lfs.Upload)
		if err != nil {
			t.Fatal(err)
		}
		l, err := s.LFS.Lock(t.Context(), by, in, "a b#c.bin")
		if err != nil {
			t.Fatal(err)
		}
		b.get("/alice/p").want(200, "Locked files")
		b.get("/alice/p/-/path_locks").want(200, `href="/alice/p/-/blob/main/a%20b%23c.bin"`, "locked by you", "Unlock")
		newBrowser(t, s).get("/alice/p/-/path_locks").want(200, "locked by alice").not("Unlock")
		b.submit("/alice/p/-/path_locks", fmt.Sprintf("/alice/p/-/path_locks/%d/delete", l.ID)).leads("/alice/p/-/path_locks")
		b.get("/alice/p/-/path_locks").want(200, "a b#c.bin was unlocked", "No locked files")
		at := "/alice/p/-/settings/general"
		b.get(at).want(200, "Git Large File Storage (LFS)")
		b.submit(at, at, "name", "p", "visibility", "public", "request_access_enabled", "1").leads(at)
		b.get("/alice/p/-/blob/main/sound.bin").want(200, "oid sha256").not("Stored with Git LFS", "Locked files")
		b.get("/alice/p/-/path_locks").want(404)
		b.submit(at, at, "name", "p", "visibility", "public", "lfs_enabled", "1").leads(at)
		b.get("/alice/p/-/blob/main/sound.bin").want(200, "Stored with Git LFS")
	})
}
