package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
)

func TestUserIdentities(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, alice := s.User(t, "alice")
		at := fmt.Sprintf("/users/%d", id)
		s.Table(t, []apptest.Call{
			{Name: "add", Do: "PUT " + at + "?provider=saml&extern_uid=a1", As: root, Status: 200, Want: `{"identities":[{"provider":"saml","extern_uid":"a1"}]}`},
			{Name: "not signed in", Do: "DELETE " + at + "/identities/saml", Status: 401},
			{Name: "not one's own", Do: "DELETE " + at + "/identities/saml", As: alice, Status: 403},
			{Name: "another provider", Do: "DELETE " + at + "/identities/ldapmain", As: root, Status: 404, Want: `{"message":"404 Identity Not Found"}`},
			{Name: "anonymous", Do: "DELETE /users/99999/identities/saml", As: root, Status: 404, Want: `{"message":"404 User Not Found"}`},
			{Name: "delete", Do: "DELETE " + at + "/identities/saml", As: root, Status: 204},
			{Name: "gone", Do: "GET " + at, As: root, Status: 200, Want: `{"identities":[]}`},
			{Name: "delete again", Do: "DELETE " + at + "/identities/saml", As: root, Status: 404},
		})
	})
}
