package app_test

import (
	"fmt"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/db/dbtest"
	"svc/internal/waittest"
)

// listener is the application name of the connections that receive notices.
const listener = "svc notices"

// TestRevokedTokenOnDeadListener revokes a token while another node that has cached
// it receives no notices, because its connection is open but sends nothing.
func TestRevokedTokenOnDeadListener(t *testing.T) {
	t.Parallel()
	dbtest.EachProxy(t, func(t *testing.T, p *dbtest.Proxy) {
		here := apptest.Start(t, p.Source)
		there := apptest.Start(t, p.Source, apptest.Beside(t, here))
		_, token := here.User(t, "carol")
		cached(t, here, there, token)

		p.Stall(listener)
		there.Check(t, apptest.Call{Do: "DELETE /personal_access_tokens/self", As: token, Status: 204})
		here.Clock.Move(2 * time.Second)
		here.Check(t, apptest.Call{Do: "GET /user", As: token, Status: 401})
		p.Resume()
		waitFresh(t, here)
		here.Check(t, apptest.Call{Do: "GET /user", As: token, Status: 401})
	})
}

// TestRevokedTokenAfterFreeze revokes a token while the process of another node is
// stopped. Its first request afterwards must not use the cached token.
func TestRevokedTokenAfterFreeze(t *testing.T) {
	t.Parallel()
	dbtest.EachProxy(t, func(t *testing.T, p *dbtest.Proxy) {
		here := apptest.Start(t, p.Source)
		there := apptest.Start(t, p.Source, apptest.Beside(t, here))
		// A stopped process receives no notices, but its clock advances.
		for i := range 15 {
			_, token := here.User(t, fmt.Sprintf("user%d", i))
			cached(t, here, there, token)
			p.Stall(listener)
			there.Check(t, apptest.Call{Do: "DELETE /personal_access_tokens/self", As: token, Status: 204})
			here.Clock.Move(time.Minute / 2)
			here.Check(t, apptest.Call{Do: "GET /user", As: token, Status: 401})
			p.Resume()
		}
	})
}

// TestRemovedMemberOnDeadListener removes a member of a private project while
// another node that has cached the member receives no notices.
func TestRemovedMemberOnDeadListener(t *testing.T) {
	t.Parallel()
	dbtest.EachProxy(t, func(t *testing.T, p *dbtest.Proxy) {
		here := apptest.Start(t, p.Source)
		there := apptest.Start(t, p.Source, apptest.Beside(t, here))
		id, token := here.User(t, "carol")
		var made struct{ ID int64 }
		here.Check(t, apptest.Call{Do: "POST /projects", As: apptest.RootToken, JSON: `{"name":"hidden","initialize_with_readme":true}`, Status: 201}).JSON(t, &made)
		here.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/members", made.ID), As: apptest.RootToken, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":30}`, id), Status: 201})
		read := fmt.Sprintf("GET /projects/%d/repository/branches", made.ID)
		cached(t, here, there, token)
		for range 2 {
			here.Check(t, apptest.Call{Do: read, As: token, Status: 200})
		}
		p.Stall(listener)
		there.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE /projects/%d/members/%d", made.ID, id), As: apptest.RootToken, Status: 204})
		here.Clock.Move(2 * time.Second)
		here.Check(t, apptest.Call{Do: read, As: token, Status: 404})
	})
}

// cached waits until a node trusts its caches and has cached the token.
func cached(t *testing.T, here, there *apptest.Server, token string) {
	t.Helper()
	waitFresh(t, here)
	waitFresh(t, there)
	for range 3 { // the first use updates the last-used time
		here.Check(t, apptest.Call{Do: "GET /user", As: token, Status: 200})
	}
}

func waitFresh(t *testing.T, s *apptest.Server) {
	t.Helper()
	waittest.For(t, "confirmed notices", s.Notices.Fresh)
}
