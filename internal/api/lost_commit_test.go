package api_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/errs"
	"svc/internal/lfs"
	"svc/internal/project"
	"svc/internal/waittest"
)

// TestLostCommits stores files when the connection to the database is lost after the commit:
// the response is an error, but the files are kept, and another attempt succeeds. Changed
// settings are used.
func TestLostCommits(t *testing.T) {
	t.Parallel()
	dbtest.EachProxy(t, func(t *testing.T, proxy *dbtest.Proxy) {
		s := apptest.Start(t, proxy.Source)
		b := newBench(t, s, withArtifacts)
		lose := func(statement string, request func() int) {
			t.Helper()
			proxy.LoseCommit(statement)
			if status := request(); status != http.StatusServiceUnavailable || !proxy.CommitLost() {
				t.Errorf("%s: status %d, connection lost: %t", statement, status, proxy.CommitLost())
			}
			s.Settled(t)
		}

		s.Check(t, apptest.Call{Do: "GET /application/settings", As: apptest.RootToken, Status: 200, Want: `{"signup_enabled":false}`})
		lose("INSERT INTO settings", func() int {
			return sendRaw(t, s, "PUT /application/settings?signup_enabled=true", private(apptest.RootToken), nil).Status
		})
		s.Check(t, apptest.Call{Name: "not from the cache", Do: "GET /application/settings", As: apptest.RootToken, Status: 200, Want: `{"signup_enabled":true}`})

		at := b.at("/packages/generic/tool/1.0/tool.bin")
		put := func() int {
			return sendRaw(t, s, "PUT "+at, private(b.owner), strings.NewReader("content of the package")).Status
		}
		lose("INSERT INTO package_blobs", put)
		if status := put(); status != http.StatusCreated {
			t.Errorf("second attempt: %d", status)
		}
		s.Settled(t)
		if got := s.Check(t, apptest.Call{Do: "GET " + at, As: b.owner, Status: 200}); string(got.Body) != "content of the package" {
			t.Errorf("package: %q", got.Body)
		}

		p, err := s.Projects.Require(t.Context(), actor.System(), project.RefTo(b.project), project.NoAccess)
		if err != nil {
			t.Fatal(err)
		}
		const large = "content of the object"
		sum := sha256.Sum256([]byte(large))
		o := lfs.Pointer{OID: hex.EncodeToString(sum[:]), Size: int64(len(large))}
		lose("INSERT INTO lfs_objects", func() int {
			if err := s.LFS.Put(t.Context(), p, o, strings.NewReader(large)); errs.Is(err, errs.KindUnavailable) {
				return http.StatusServiceUnavailable
			}
			return http.StatusOK
		})
		answers, err := s.LFS.Batch(t.Context(), actor.System(), p, lfs.Upload, []lfs.Pointer{o})
		if err != nil {
			t.Fatal(err)
		}
		if answers[0].Transfer {
			if err := s.LFS.Put(t.Context(), p, o, strings.NewReader(large)); err != nil {
				t.Fatal(err)
			}
		}
		object, err := s.LFS.Open(t.Context(), p, o.OID)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(object); string(got) != large || err != nil {
			t.Errorf("LFS object: %q, %v", got, err)
		}
		if err := object.Close(); err != nil {
			t.Error(err)
		}

		b.pipeline(b.project)
		j := b.run()
		archive := zipped(t, map[string]string{"out/a.txt": "A"})
		lose("INSERT INTO job_artifacts", func() int {
			return b.upload(j, "artifact_type=archive&artifact_format=zip", archive, http.StatusServiceUnavailable).Status
		})
		b.upload(j, "artifact_type=archive&artifact_format=zip", archive, 201)
		s.Settled(t)
		if got := s.Check(t, apptest.Call{Do: "GET " + b.at("/jobs/%d/artifacts/out/a.txt", j.ID), As: b.owner, Status: 200}); string(got.Body) != "A" {
			t.Errorf("artifact: %q", got.Body)
		}

		body, kind := multipartBody(t, "me.png", picture(t))
		lose("UPDATE users", func() int {
			return sendRaw(t, s, "PUT /user/avatar", map[string]string{"Private-Token": b.owner, "Content-Type": kind}, body).Status
		})
		var u struct {
			Avatar string `json:"avatar_url"`
		}
		s.Check(t, apptest.Call{Do: "GET /user", As: b.owner, Status: 200}).JSON(t, &u)
		s.Check(t, apptest.Call{Do: "GET /" + strings.TrimPrefix(u.Avatar, s.URL), Status: 200})
	})
}

// TestLateCommitOfStorageMove commits the switch of a storage move after its node has lost the
// connection to the database: the node does not delete the copy, which is the repository then.
func TestLateCommitOfStorageMove(t *testing.T) {
	t.Parallel()
	dbtest.EachProxy(t, func(t *testing.T, proxy *dbtest.Proxy) {
		s := apptest.Start(t, proxy.Source, apptest.Storages)
		direct := dbtest.Source{URL: proxy.Direct}.Open(t)
		s.Moves.Step = func(name string) {
			if name == "switch" {
				proxy.DelayCommit("UPDATE storage_moves SET source")
			}
		}
		p := newProject(t, s, apptest.RootToken, "p", `,"initialize_with_readme":true`)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/repository_storage_moves", p), As: apptest.RootToken, JSON: `{"destination_storage_name":"second"}`, Status: 201})
		waittest.For(t, "a transaction that waits for the switch", func() bool {
			waits, err := db.Exists(t.Context(), direct, `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
			return err == nil && waits
		})
		proxy.ReleaseCommit()
		finished(t, s)
		s.Table(t, []apptest.Call{
			{Name: "moved", Do: fmt.Sprintf("GET /projects/%d/repository_storage_moves", p), As: apptest.RootToken, Status: 200, Want: `[{"state":"finished"}]`},
			{Name: "complete", Do: fmt.Sprintf("GET /projects/%d/repository/files/README.md/raw?ref=main", p), As: apptest.RootToken, Status: 200},
		})
	})
}
