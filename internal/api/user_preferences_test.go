package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
)

func TestUserPreferences(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, alice := s.User(t, "alice")
		s.Table(t, []apptest.Call{
			{Do: "GET /user/preferences", As: alice, Status: 200, Want: fmt.Sprintf(
				`{"id":%d,"user_id":%d,"view_diffs_file_by_file":false,"show_whitespace_in_diffs":true,"pass_user_identities_to_ci_jwt":false}`, id, id)},
			{Do: "PUT /user/preferences", As: alice, JSON: `{"view_diffs_file_by_file":true,"show_whitespace_in_diffs":false}`, Status: 200,
				Want: `{"view_diffs_file_by_file":true,"show_whitespace_in_diffs":false,"pass_user_identities_to_ci_jwt":false}`},
			{Do: "PUT /user/preferences", As: alice, JSON: `{"pass_user_identities_to_ci_jwt":true}`, Status: 200, Want: `{"pass_user_identities_to_ci_jwt":true}`},
			{Do: "GET /user/preferences", As: alice, Status: 200, Want: `{"view_diffs_file_by_file":true,"pass_user_identities_to_ci_jwt":true}`},
			{Name: "nothing", Do: "PUT /user/preferences", As: alice, JSON: `{}`, Status: 400},
			{Name: "not a boolean", Do: "PUT /user/preferences", As: alice, JSON: `{"view_diffs_file_by_file":"x"}`, Status: 400},
			{Name: "anonymous", Do: "GET /user/preferences", Status: 401},
		})
	})
}
