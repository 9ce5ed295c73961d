package api_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/blob/blobtest"
	"svc/internal/db/dbtest"
	"svc/internal/git/gittest"
	"svc/internal/waittest"
)

// TestBucketStorage uses a project whose repository is in object storage, on two
// nodes without a common directory, and moves the repository to the bucket and back.
func TestBucketStorage(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		a := apptest.Start(t, src, apptest.BucketStorage(blobtest.S3(t)))
		b := a
		if src.URL != "" { // the embedded database allows only one node
			b = apptest.Start(t, src, apptest.Beside(t, a))
		}
		_, alice := a.User(t, "alice")
		p := newProject(t, a, alice, "p", `,"initialize_with_readme":true`)
		at := fmt.Sprintf("/projects/%d", p)
		a.Check(t, apptest.Call{Do: "POST " + at + "/wikis", As: alice, JSON: `{"title":"home","content":"Welcome"}`, Status: 201})
		move := func(to string) {
			t.Helper()
			a.Check(t, apptest.Call{Do: "POST " + at + "/repository_storage_moves", As: apptest.RootToken, JSON: fmt.Sprintf(`{"destination_storage_name":%q}`, to), Status: 201})
			finished(t, a)
			a.Check(t, apptest.Call{Do: "GET " + at, As: apptest.RootToken, Status: 200, Want: fmt.Sprintf(`{"repository_storage":%q}`, to)})
			for i, s := range []*apptest.Server{a, b} {
				waittest.For(t, "a node writes again", func() bool { // the node may be notified of the move late
					name := fmt.Sprintf("%s-%d", to, i)
					return s.Send(t, apptest.Call{Do: "POST " + at + "/repository/files/" + name, As: alice, JSON: `{"branch":"main","content":"x","commit_message":"x"}`}).Status == 201
				})
			}
		}
		move("bucket")
		if left := bare(t, a, "default"); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
		nodes := []*apptest.Server{a, b}
		for i := range 6 {
			from, to := nodes[i%2], nodes[(i+1)%2]
			file := fmt.Sprintf("f%d", i)
			var made struct{ ID string }
			from.Check(t, apptest.Call{Do: "POST " + at + "/repository/commits", As: alice, Status: 201,
				JSON: fmt.Sprintf(`{"branch":"main","commit_message":"x","actions":[{"action":"create","file_path":%q,"content":"text %d"}]}`, file, i)}).JSON(t, &made)
			to.Check(t, apptest.Call{Do: "GET " + at + "/repository/commits/" + made.ID, As: alice, Status: 200})
			to.Check(t, apptest.Call{Do: "GET " + at + "/repository/files/" + file + "?ref=main", As: alice, Status: 200, Want: fmt.Sprintf(`{"last_commit_id":%q}`, made.ID)})
			if i == 3 { // the node fetches it again, because its directory is only a cache
				// Renamed, because the node may write to it.
				if err := os.Rename(filepath.Join(to.Config.Storages["bucket"], "projects"), filepath.Join(t.TempDir(), "gone")); err != nil {
					t.Fatal(err)
				}
			}
		}
		// A push by git, a merge request and a fork.
		dir := filepath.Join(t.TempDir(), "work")
		gittest.Run(t, "", "clone", "-q", remoteOf(b, alice, "alice/p"), dir)
		for i := range 120 { // more than git unpacks into loose objects
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("many", i)), fmt.Append(nil, i), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		gittest.Run(t, dir, "checkout", "-q", "-b", "topic")
		gittest.Run(t, dir, "add", ".")
		gittest.Run(t, dir, "commit", "-q", "-m", "many")
		gittest.Run(t, dir, "tag", "-m", "note", "v1")
		gittest.Run(t, dir, "push", "-q", remoteOf(a, alice, "alice/p"), "topic", "v1")
		b.Check(t, apptest.Call{Do: "POST " + at + "/merge_requests", As: alice, JSON: `{"source_branch":"topic","target_branch":"main","title":"m"}`, Status: 201})
		waittest.For(t, "the merge request is merged", func() bool {
			return a.Send(t, apptest.Call{Do: "PUT " + at + "/merge_requests/1/merge", As: alice}).Status == 200
		})
		b.Check(t, apptest.Call{Do: "GET " + at + "/repository/files/many7?ref=main", As: alice, Status: 200})
		b.Check(t, apptest.Call{Do: "GET " + at + "/repository/tags/v1", As: alice, Status: 200, Want: `{"message":"note"}`})
		var fork struct{ ID int64 }
		b.Check(t, apptest.Call{Do: "POST " + at + "/fork", As: alice, JSON: `{"path":"fork","name":"fork"}`, Status: 201}).JSON(t, &fork)
		waittest.For(t, "the fork has the file", func() bool {
			return a.Send(t, apptest.Call{Do: "GET /projects/alice%2Ffork/repository/files/many7?ref=main", As: alice}).Status == 200
		})
		b.Check(t, apptest.Call{Do: "POST " + at + "/housekeeping", As: alice, Status: 201})
		b.Check(t, apptest.Call{Do: "GET " + at + "/wikis/home", As: alice, Status: 200, Want: `{"content":"Welcome"}`})

		move("default")
		for _, s := range nodes {
			s.Check(t, apptest.Call{Do: "GET " + at + "/repository/files/many7?ref=v1", As: alice, Status: 200})
			s.Check(t, apptest.Call{Do: "GET " + at + "/wikis/home", As: alice, Status: 200, Want: `{"content":"Welcome"}`})
		}
		for _, found := range bare(t, a, "default") {
			gittest.At(t, filepath.Join(a.Config.Storages["default"], found)).Git("fsck", "--strict", "--full")
		}
		// The fork stays in the bucket: it was stored on the storage of its source.
		const refs = `SELECT count(*) FROM bucket_refs x JOIN bucket_repositories r ON r.id = x.repository_id WHERE r.path `
		path := fmt.Sprintf(`LIKE '%%/%d.git'`, fork.ID)
		if left, own := rows(t, a, refs+`NOT `+path), rows(t, a, refs+path); left != 0 || own == 0 {
			t.Errorf("%d refs are left in the bucket, %d of the fork", left, own)
		}
	})
}

// remoteOf returns the URL of a project for git, with a token.
func remoteOf(s *apptest.Server, token, path string) string {
	return fmt.Sprintf("http://token:%s@%s/%s.git", token, s.URL[len("http://"):], path)
}
