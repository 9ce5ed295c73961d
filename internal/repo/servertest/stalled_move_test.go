package servertest

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/repo/storagemove"
	"svc/internal/waittest"
)

// TestStalledRun stalls the run of a move before it copies the wiki, as if its node were
// suspended, until another node has finished the move. Then it goes on, and must not remove
// what it takes for a copy of its own.
func TestStalledRun(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		ctx := t.Context()
		copies, reached, goes := 0, make(chan struct{}), make(chan struct{})
		s.Moves.Step = func(name string) {
			if name != "copy" {
				return
			}
			if copies++; copies == 2 {
				close(reached)
				<-goes
			}
		}
		another := &storagemove.Service{Deps: s.Moves.Deps}
		another.Step = func(string) {}
		_, alice := s.User(t, "alice")
		var made, move struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: `{"name":"p","initialize_with_readme":true}`, Status: 201}).JSON(t, &made)
		at := fmt.Sprintf("/projects/%d", made.ID)
		s.Check(t, apptest.Call{Do: "POST " + at + "/wikis", As: alice, JSON: `{"title":"home","content":"wiki"}`, Status: 201})
		s.Check(t, apptest.Call{Do: "POST " + at + "/repository_storage_moves", As: apptest.RootToken, JSON: `{"destination_storage_name":"second"}`, Status: 201}).JSON(t, &move)
		<-reached
		if err := another.Run(ctx, move.ID); err != nil {
			t.Fatal(err)
		}
		path := fmt.Sprintf("%s/repository_storage_moves/%d", at, move.ID)
		waittest.For(t, "the move to end", func() bool {
			var now struct{ State string }
			s.Check(t, apptest.Call{Do: "GET " + path, As: apptest.RootToken, Status: 200}).JSON(t, &now)
			return now.State == "finished"
		})
		close(goes)
		if err := s.Queue.Idle(ctx); err != nil {
			t.Fatal(err)
		}
		s.Table(t, []apptest.Call{
			{Do: "GET " + path, As: apptest.RootToken, Status: 200, Want: `{"state":"finished"}`},
			{Do: "GET " + at + "/wikis/home", As: alice, Status: 200, Want: `{"content":"wiki"}`},
			{Do: "GET " + at + "/repository/files/README.md/raw", As: alice, Status: 200},
			{Do: "PUT " + at + "/wikis/home", As: alice, JSON: `{"content":"more"}`, Status: 200},
		})
	}, apptest.Storages)
}
