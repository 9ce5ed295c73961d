package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/project"
)

// TestApprovalHooks checks the events of approvals that satisfy all rules and of
// other approvals, including that of a user whom the remaining rule does not list.
func TestApprovalHooks(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		allowLocal(t, s)
		r := newReceiver(t)
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		danID, dan := s.User(t, "dan")
		id := code(t, s, alice, "code", "")
		enlist(t, s, id, bobID, project.Developer)
		enlist(t, s, id, danID, project.Developer)
		at := fmt.Sprintf("/projects/%d", id)
		m := proposed(t, s, alice, id, "work", "")
		s.Table(t, []apptest.Call{
			{Do: "POST " + at + "/approval_rules", As: alice, JSON: fmt.Sprintf(`{"name":"Security","approvals_required":1,"user_ids":[%d]}`, danID), Status: 201},
			{Do: "POST " + at + "/hooks", As: alice, JSON: `{"url":"` + r.URL + `","push_events":false,"merge_requests_events":true}`, Status: 201},
			{Do: "POST " + m + "/approve", As: bob, Status: 201, Want: `{"approved":false,"approvals_left":1}`},
			{Do: "POST " + m + "/approve", As: dan, Status: 201, Want: `{"approved":true}`},
			{Do: "POST " + m + "/unapprove", As: bob, Status: 201},
		})
		for _, want := range [][2]string{{"bob", "approval"}, {"dan", "approved"}, {"bob", "unapproved"}} {
			r.receive(t, want[0]+": "+want[1], func(q received) bool {
				return q.field("user.username") == want[0] && q.field("object_attributes.action") == want[1]
			})
		}
	})
}
