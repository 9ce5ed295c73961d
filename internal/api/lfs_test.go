package api_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/lfs"
	"svc/internal/project"
)

// TestLFSObjects checks LFS objects in files, archives, forks and merge requests,
// and their removal.
func TestLFSObjects(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		find := func(path string) *project.Project {
			t.Helper()
			p, err := s.Projects.Require(t.Context(), actor.System(), project.Ref(path), project.NoAccess)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		// add uploads an object and returns its pointer.
		add := func(path, content string) string {
			t.Helper()
			sum := sha256.Sum256([]byte(content))
			o := lfs.Pointer{OID: hex.EncodeToString(sum[:]), Size: int64(len(content))}
			if err := s.LFS.Put(t.Context(), find(path), o, strings.NewReader(content)); err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("version https://git-lfs.github.com/spec/v1\\noid sha256:%s\\nsize %d\\n", o.OID, o.Size)
		}
		has := func(path, content string) bool {
			t.Helper()
			sum := sha256.Sum256([]byte(content))
			yes, err := s.LFS.Has(t.Context(), find(path), lfs.Pointer{OID: hex.EncodeToString(sum[:]), Size: int64(len(content))})
			if err != nil {
				t.Fatal(err)
			}
			return yes
		}
		const large, gone, theirs = "a large file", "no longer needed", "a contribution"
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, Status: 201, JSON: `{"name":"p","visibility":"public","initialize_with_readme":true}`, Want: `{"lfs_enabled":true}`})
		s.Check(t, apptest.Call{Do: "POST /projects/alice%2Fp/repository/files/a.bin", As: alice, Status: 201, JSON: `{"branch":"main","commit_message":"m","content":"` + add("alice/p", large) + `"}`})
		add("alice/p", gone)
		raw := "/projects/alice%2Fp/repository/files/a.bin/raw?ref=main"
		if got := s.Send(t, apptest.Call{Do: "GET " + raw}); got.Status != 200 || !strings.HasPrefix(string(got.Body), "version https://git-lfs") {
			t.Errorf("the pointer: %d %s", got.Status, got.Body)
		}
		got := s.Send(t, apptest.Call{Do: "GET " + raw + "&lfs=true"})
		if got.Status != 200 || string(got.Body) != large || got.Header.Get("X-Svc-Size") != "12" {
			t.Errorf("the object: %d %s %v", got.Status, got.Body, got.Header)
		}
		if got := s.Send(t, apptest.Call{Do: "GET /projects/alice%2Fp/repository/files/README.md/raw?lfs=true"}); got.Status != 200 || !strings.HasPrefix(string(got.Body), "# p") {
			t.Errorf("another file: %d %s", got.Status, got.Body)
		}

		// The field shows whether LFS is enabled; groups set the default of new
		// projects.
		var group struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /groups", As: alice, Status: 201, JSON: `{"name":"g","path":"g","lfs_enabled":false}`, Want: `{"lfs_enabled":false}`}).JSON(t, &group)
		s.Table(t, []apptest.Call{
			{Do: "POST /projects", As: alice, JSON: fmt.Sprintf(`{"name":"a","namespace_id":%d}`, group.ID), Status: 201, Want: `{"lfs_enabled":false}`},
			{Do: "POST /projects", As: alice, JSON: fmt.Sprintf(`{"name":"b","namespace_id":%d,"lfs_enabled":true}`, group.ID), Status: 201, Want: `{"lfs_enabled":true}`},
			{Do: "PUT /application/settings", As: apptest.RootToken, JSON: `{"lfs_enabled":false}`, Status: 200, Want: `{"lfs_enabled":false}`},
			{Do: "GET /projects/g%2Fb", As: alice, Status: 200, Want: `{"lfs_enabled":false}`},
			{Do: "PUT /application/settings", As: apptest.RootToken, JSON: `{"lfs_enabled":true}`, Status: 200},
			{Do: "GET /projects/g%2Fb", As: alice, Status: 200, Want: `{"lfs_enabled":true}`},
		})

		// Archives contain the objects.
		archive := func(query string) []byte {
			t.Helper()
			return s.Check(t, apptest.Call{Do: "GET /projects/alice%2Fp/repository/archive" + query, Status: 200}).Body
		}
		if files := untar(t, archive(".tar?sha=main")); files["a.bin"] != large || !strings.HasPrefix(files["README.md"], "# p") {
			t.Errorf("tar: %q", files)
		}
		if files := unzip(t, archive(".zip?sha=main")); files["a.bin"] != large || !strings.HasPrefix(files["README.md"], "# p") {
			t.Errorf("zip: %q", files)
		}
		if files := untar(t, archive(".tar?sha=main&include_lfs_blobs=false")); !strings.HasPrefix(files["a.bin"], "version") {
			t.Errorf("tar without objects: %q", files)
		}

		// A fork has the objects of its source; a merge request gives its target
		// project the objects that its commits refer to.
		s.Check(t, apptest.Call{Do: "POST /projects/alice%2Fp/fork", As: bob, Status: 201, JSON: `{}`})
		s.Settled(t)
		if !has("bob/p", large) {
			t.Error("the fork does not have the object")
		}
		pointer := add("bob/p", theirs)
		other := add("bob/p", "not offered")
		s.Table(t, []apptest.Call{
			{Do: "POST /projects/bob%2Fp/repository/files/b.bin", As: bob, Status: 201, JSON: `{"branch":"mine","start_branch":"main","commit_message":"m","content":"` + pointer + `"}`},
			{Do: "POST /projects/bob%2Fp/repository/files/c.bin", As: bob, Status: 201, JSON: `{"branch":"other","start_branch":"main","commit_message":"m","content":"` + other + `"}`},
			{Do: "POST /projects/bob%2Fp/merge_requests", As: bob, Status: 201,
				JSON: fmt.Sprintf(`{"source_branch":"mine","target_branch":"main","title":"t","target_project_id":%d}`, find("alice/p").ID)},
		})
		s.Settled(t)
		if !has("alice/p", theirs) || has("alice/p", "not offered") {
			t.Errorf("the target has the object: %t, another one: %t", has("alice/p", theirs), has("alice/p", "not offered"))
		}
		s.Check(t, apptest.Call{Do: "GET /projects/alice%2Fp?statistics=true", As: alice, Status: 200,
			Want: fmt.Sprintf(`{"statistics":{"lfs_objects_size":%d}}`, len(large)+len(gone)+len(theirs))})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /groups/%d?statistics=true", group.ID), As: apptest.RootToken, Status: 200})

		// A merge does not wait for the background job that adds the objects.
		s.Check(t, apptest.Call{Do: "POST /projects/bob%2Fp/merge_requests", As: bob, Status: 201, Want: `{"iid":2}`,
			JSON: fmt.Sprintf(`{"source_branch":"other","target_branch":"main","title":"t","target_project_id":%d}`, find("alice/p").ID)})
		s.Settled(t)
		forget := []string{
			`DELETE FROM lfs_project_objects WHERE project_id = ? AND object_id = (SELECT max(id) FROM lfs_objects)`,
			fmt.Sprintf(`UPDATE lfs_projects SET size = size - %d WHERE project_id = ?`, len("not offered")),
		}
		for _, query := range forget {
			if _, err := s.DB.ExecContext(t.Context(), query, find("alice/p").ID); err != nil {
				t.Fatal(err)
			}
		}
		if has("alice/p", "not offered") {
			t.Fatal("the object is not forgotten")
		}
		s.Check(t, apptest.Call{Do: "PUT /projects/alice%2Fp/merge_requests/2/merge", As: alice, Status: 200})
		if !has("alice/p", "not offered") {
			t.Error("the target does not have the object of a merged commit")
		}

		// Objects that no commit refers to are removed after some time; those of the
		// fork are kept.
		s.Clock.Move(10 * 24 * time.Hour)
		sweep := func() {
			t.Helper()
			if err := s.LFS.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.Settled(t)
			if err := s.LFS.SweepObjects(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.Settled(t)
		}
		sweep()
		if !has("alice/p", gone) {
			t.Error("the object was removed too soon")
		}
		s.Clock.Move(10 * 24 * time.Hour)
		sweep()
		if has("alice/p", gone) || !has("alice/p", large) || !has("alice/p", theirs) {
			t.Errorf("after a time: %t %t %t", has("alice/p", gone), has("alice/p", large), has("alice/p", theirs))
		}
		s.Check(t, apptest.Call{Do: "GET /projects/alice%2Fp?statistics=true", As: alice, Status: 200,
			Want: fmt.Sprintf(`{"statistics":{"lfs_objects_size":%d}}`, len(large)+len(theirs)+len("not offered"))})
		stored := func() (n int) {
			for range s.Blobs.List(t.Context(), "lfs/") {
				n++
			}
			return n
		}
		if n := stored(); n != 3 {
			t.Errorf("%d contents are stored", n)
		}

		// The source is deleted, and the fork keeps its objects.
		add("alice/p", "only here")
		s.Check(t, apptest.Call{Do: "PUT /application/settings?deletion_adjourned_period=0", As: apptest.RootToken, Status: 200})
		if err := s.Projects.Delete(t.Context(), actor.System(), "alice/p", project.Deletion{}); err != nil {
			t.Fatal(err)
		}
		s.Settled(t)
		sweep()
		if !has("bob/p", large) {
			t.Error("the object went with the origin")
		}
		if n := stored(); n != 3 {
			t.Errorf("%d contents are stored", n)
		}
	})
}

// TestLFSOfMergeRequests checks that the objects of merge requests of others do not use up
// the size limit of the target project.
func TestLFSOfMergeRequests(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, Status: 201, JSON: `{"name":"p","visibility":"public","initialize_with_readme":true}`})
		find := func(path string) *project.Project {
			t.Helper()
			p, err := s.Projects.Require(t.Context(), actor.System(), project.Ref(path), project.NoAccess)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		has := func(path string, o lfs.Pointer) bool {
			t.Helper()
			yes, err := s.LFS.Has(t.Context(), find(path), o)
			if err != nil {
				t.Fatal(err)
			}
			return yes
		}
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200, JSON: `{"repository_size_limit":1}`})
		offered, tokens := map[string]lfs.Pointer{}, map[string]string{}
		authors := []string{"bob", "carol"}
		for _, user := range authors {
			_, tokens[user] = s.User(t, user)
			s.Check(t, apptest.Call{Do: "POST /projects/alice%2Fp/fork", As: tokens[user], Status: 201, JSON: `{}`})
		}
		s.Settled(t)
		for _, user := range authors {
			token := tokens[user]
			content := strings.Repeat(user+" ", 700<<10/(len(user)+1))
			sum := sha256.Sum256([]byte(content))
			o := lfs.Pointer{OID: hex.EncodeToString(sum[:]), Size: int64(len(content))}
			if err := s.LFS.Put(t.Context(), find(user+"/p"), o, strings.NewReader(content)); err != nil {
				t.Fatal(err)
			}
			offered[user] = o
			s.Table(t, []apptest.Call{
				{Do: "POST /projects/" + user + "%2Fp/repository/files/" + user + ".bin", As: token, Status: 201,
					JSON: fmt.Sprintf(`{"branch":"mine","start_branch":"main","commit_message":"m","content":"version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n"}`, o.OID, o.Size)},
				{Do: "POST /projects/" + user + "%2Fp/merge_requests", As: token, Status: 201,
					JSON: fmt.Sprintf(`{"source_branch":"mine","target_branch":"main","title":"t","target_project_id":%d}`, find("alice/p").ID)},
			})
			s.Settled(t)
		}
		if !has("alice/p", offered["bob"]) || has("alice/p", offered["carol"]) {
			t.Errorf("the target has the first object: %t, the second: %t", has("alice/p", offered["bob"]), has("alice/p", offered["carol"]))
		}
		s.Table(t, []apptest.Call{
			{Do: "POST /projects/alice%2Fp/repository/files/more.txt", As: alice, Status: 201, JSON: `{"branch":"main","commit_message":"m","content":"more"}`},
			{Do: "PUT /projects/alice%2Fp/merge_requests/1/merge", As: alice, Status: 200},
			{Do: "PUT /projects/alice%2Fp/merge_requests/2/merge", As: alice, Status: 413},
			{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200, JSON: `{"repository_size_limit":2}`},
			{Do: "PUT /projects/alice%2Fp/merge_requests/2/merge", As: alice, Status: 200},
		})
		if !has("alice/p", offered["carol"]) {
			t.Error("the target does not have the object of a merged commit")
		}
	})
}

func untar(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	files := map[string]string{}
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name[strings.LastIndexByte(h.Name, '/')+1:]] = string(text)
	}
}

func unzip(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	files := map[string]string{}
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.File {
		content, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(content)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name[strings.LastIndexByte(f.Name, '/')+1:]] = string(text)
	}
	return files
}
