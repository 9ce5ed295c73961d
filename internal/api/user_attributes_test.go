package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
)

func TestUserAttributes(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, alice := s.User(t, "alice")
		of := fmt.Sprintf("/users/%d/custom_attributes", id)
		s.Table(t, []apptest.Call{
			{Do: "GET " + of, Status: 401},
			{Name: "not one's own", Do: "GET " + of, As: alice, Status: 403},
			{Name: "none", Do: "GET " + of, As: root, Status: 200, Want: `[]`},
			{Name: "missing", Do: "PUT " + of + "/role", As: root, Status: 400, Want: `{"error":"value is missing"}`},
			{Name: "set", Do: "PUT " + of + "/role?value=dev", As: root, Status: 200, Want: `{"key":"role","value":"dev"}`},
			{Name: "change", Do: "PUT " + of + "/role?value=ops", As: root, Status: 200, Want: `{"key":"role","value":"ops"}`},
			{Name: "a key with a dot and a slash", Do: "PUT " + of + "/a.b%2Fc?value=1", As: root, Status: 200, Want: `{"key":"a.b/c"}`},
			{Name: "set as another", Do: "PUT " + of + "/role?value=dev", As: alice, Status: 403},
			{Name: "get", Do: "GET " + of + "/role", As: root, Status: 200, Want: `{"key":"role","value":"ops"}`},
			{Name: "get none", Do: "GET " + of + "/x", As: root, Status: 404, Want: `{"message":"404 Custom Attribute Not Found"}`},
			{Name: "list", Do: "GET " + of, As: root, Status: 200, Want: `[{"key":"a.b/c"},{"key":"role"}]`},
			{Name: "anonymous", Do: "GET /users/99999/custom_attributes", As: root, Status: 404, Want: `{"message":"404 User Not Found"}`},
			{Name: "find by it", Do: "GET /users?custom_attributes[role]=ops&with_custom_attributes=true", As: root, Status: 200,
				Want: `[{"username":"alice","custom_attributes":[{"key":"a.b/c"},{"key":"role"}]}]`},
			{Name: "delete", Do: "DELETE " + of + "/role", As: root, Status: 204},
			{Name: "delete again", Do: "DELETE " + of + "/role", As: root, Status: 404},
		})
	})
}
