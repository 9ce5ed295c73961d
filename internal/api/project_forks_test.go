package api_test

import (
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/blob/blobtest"
	"svc/internal/db/dbtest"
	"svc/internal/waittest"
)

func TestForks(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		idle := func() {
			t.Helper()
			if err := s.Queue.Idle(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		s.Table(t, []apptest.Call{
			{Do: "POST /projects", As: alice, JSON: `{"name":"one","description":"first","visibility":"public","initialize_with_readme":true}`, Status: 201},
			{Do: "POST /projects", As: alice, JSON: `{"name":"bare","visibility":"public"}`, Status: 201},
			{Do: "POST /projects", As: alice, JSON: `{"name":"closed","visibility":"public","forking_access_level":"disabled"}`, Status: 201},
			{Do: "POST /projects", As: alice, JSON: `{"name":"inside","visibility":"public","forking_access_level":"private"}`, Status: 201},
			{Do: "POST /projects", As: alice, JSON: `{"name":"secret"}`, Status: 201},

			{Do: "POST /projects/alice%2Fone/fork", As: bob, Status: 201,
				Want: `{"path_with_namespace":"bob/one","description":"first","visibility":"public","forked_from_project":{"path_with_namespace":"alice/one"}}`},
			{Name: "a path is taken", Do: "POST /projects/alice%2Fone/fork", As: bob, Status: 409, Want: `{"message":{"path":["has already been taken"]}}`},
			{Do: "POST /projects/alice%2Fone/fork", As: bob, JSON: `{"path":"own","name":"Own","visibility":"private","branches":"main"}`, Status: 201,
				Want: `{"path_with_namespace":"bob/own","name":"Own","visibility":"private"}`},
			{Do: "POST /projects/alice%2Fone/fork", As: bob, JSON: `{"path":"x","branches":"other"}`, Status: 400},
			{Do: "POST /projects/alice%2Fone/fork", As: bob, JSON: `{"path":"x","namespace_path":"alice"}`, Status: 404},
			{Do: "POST /projects/alice%2Fbare/fork", As: bob, Status: 201},
			{Do: "POST /projects/alice%2Fclosed/fork", As: bob, Status: 403},
			{Do: "POST /projects/alice%2Finside/fork", As: bob, Status: 403},
			{Do: "POST /projects/alice%2Fsecret/fork", As: bob, Status: 404},
			{Do: "POST /projects/alice%2Fone/fork", Status: 401},
		})
		idle()
		s.Table(t, []apptest.Call{
			{Do: "GET /projects/bob%2Fone", As: bob, Status: 200, Want: `{"import_status":"finished","default_branch":"main","empty_repo":false,"forks_count":0}`},
			{Do: "GET /projects/bob%2Fown", As: bob, Status: 200, Want: `{"import_status":"finished","default_branch":"main"}`},
			{Do: "GET /projects/bob%2Fbare", As: bob, Status: 200, Want: `{"import_status":"finished","default_branch":"main","empty_repo":true}`},
			{Do: "GET /projects/alice%2Fone", As: alice, Status: 200, Want: `{"forks_count":2,"import_status":"none"}`},
			{Name: "alice does not see what is private", Do: "GET /projects/alice%2Fone/forks", As: alice, Status: 200, Want: `[{"path_with_namespace":"bob/one"}]`},

			{Do: "DELETE /projects/bob%2Fone/fork", As: alice, Status: 403},
			{Do: "DELETE /projects/bob%2Fone/fork", As: bob, Status: 204},
			{Do: "GET /projects/bob%2Fone", As: bob, Status: 200, Not: []string{"forked_from_project"}},
			{Do: "POST /projects/bob%2Fone/fork/alice%2Fone", As: bob, Status: 403},
			{Do: "POST /projects/bob%2Fone/fork/alice%2Fone", As: apptest.RootToken, Status: 201, Want: `{"forked_from_project":{"path_with_namespace":"alice/one"}}`},
			{Do: "POST /projects/bob%2Fone/fork/alice%2Fone", As: apptest.RootToken, Status: 409},
			{Name: "no circle", Do: "POST /projects/alice%2Fone/fork/bob%2Fone", As: apptest.RootToken, Status: 400},
		})

		// The files of a project are deleted with it.
		s.Check(t, apptest.Call{Do: "PUT /application/settings?deletion_adjourned_period=0", As: apptest.RootToken, Status: 200})
		s.Check(t, apptest.Call{Do: "DELETE /projects/bob%2Fown", As: bob, Status: 202})
		idle()
		s.Check(t, apptest.Call{Do: "POST /projects", As: bob, JSON: `{"name":"own"}`, Status: 201, Want: `{"empty_repo":true}`})
	})
}

// TestForkRunTwice runs the job of a fork with only the default branch again, as another node
// does after a failure: branches that were pushed since are kept, and others are not copied.
func TestForkRunTwice(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]func(t *testing.T) []apptest.Option{
		"files": func(*testing.T) []apptest.Option { return nil },
		"bucket": func(t *testing.T) []apptest.Option {
			return []apptest.Option{apptest.Bucket(blobtest.S3(t)), apptest.InBucket}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
				forkTwice(t, apptest.Start(t, src, opts(t)...))
			})
		})
	}
}

func forkTwice(t *testing.T, s *apptest.Server) {
	t.Helper()
	_, alice := s.User(t, "alice")
	s.Table(t, []apptest.Call{
		{Do: "POST /projects", As: alice, JSON: `{"name":"one","initialize_with_readme":true}`, Status: 201},
		{Do: "POST /projects/alice%2Fone/repository/branches", As: alice, JSON: `{"branch":"side","ref":"main"}`, Status: 201},
		{Do: "POST /projects/alice%2Fone/repository/tags", As: alice, JSON: `{"tag_name":"v1","ref":"main"}`, Status: 201},
		{Do: "POST /projects/alice%2Fone/fork", As: alice, JSON: `{"path":"two","name":"two","branches":"main"}`, Status: 201},
	})
	s.Settled(t)
	s.Table(t, []apptest.Call{
		{Name: "only the default branch", Do: "GET /projects/alice%2Ftwo/repository/branches", As: alice, Status: 200, Want: `[{"name":"main"}]`, Not: []string{"side"}},
		{Name: "no tags", Do: "GET /projects/alice%2Ftwo/repository/tags", As: alice, Status: 200, Want: `[]`},
		{Do: "POST /projects/alice%2Ftwo/repository/branches", As: alice, JSON: `{"branch":"pushed","ref":"main"}`, Status: 201},
	})
	for _, again := range []string{`UPDATE projects SET import_status = 'scheduled' WHERE path = 'two'`, `UPDATE river_job SET state = 'available', finalized_at = NULL WHERE kind = 'repo_fork'`} {
		if _, err := s.DB.ExecContext(t.Context(), again); err != nil {
			t.Fatal(err)
		}
	}
	waittest.For(t, "the fork is copied again", func() bool {
		return rows(t, s, `SELECT count(*) FROM projects WHERE path = 'two' AND import_status = 'finished'`) == 1
	})
	s.Settled(t)
	s.Check(t, apptest.Call{Do: "GET /projects/alice%2Ftwo/repository/branches/pushed", As: alice, Status: 200})
}
