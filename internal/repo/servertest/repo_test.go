package servertest

import (
	"testing"

	"svc/internal/app/apptest"
)

// TestCreateWithReadme creates a project whose repository has a first commit.
func TestCreateWithReadme(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		s.Table(t, []apptest.Call{
			{Do: "POST /projects", As: alice, JSON: `{"name":"one","initialize_with_readme":true,"default_branch":"trunk"}`, Status: 201,
				Want: `{"default_branch":"trunk","empty_repo":false}`},
			{Do: "POST /projects", As: alice, JSON: `{"name":"two","initialize_with_readme":true,"default_branch":"-x"}`, Status: 400},
			{Do: "GET /projects/alice%2Ftwo", As: alice, Status: 404},
			{Do: "POST /projects", As: alice, JSON: `{"name":"three"}`, Status: 201, Want: `{"default_branch":"main","empty_repo":true}`},
		})
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Check(t, apptest.Call{Do: "GET /projects/alice%2Fone?statistics=true", As: alice, Status: 200, Want: `{"statistics":{"commit_count":1}}`})
	})
}
