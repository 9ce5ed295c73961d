package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

func TestInstanceVariables(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		list, one := "/admin/ci/variables", "/admin/ci/variables/DEPLOY_KEY"
		for _, do := range []string{"GET " + list, "GET " + one, "POST " + list + "?key=A&value=b", "PUT " + one + "?value=b", "DELETE " + one} {
			s.Check(t, apptest.Call{Do: do, Status: 401})
			s.Check(t, apptest.Call{Do: do, As: alice, Status: 403, Want: `{"message":"403 Forbidden"}`})
		}
		s.Table(t, []apptest.Call{
			{Do: "GET " + list, As: root, Status: 200, Want: `[]`},
			{Do: "GET " + one, As: root, Status: 404, Want: `{"message":"404 InstanceVariable Not Found"}`},
			{Do: "PUT " + one, As: root, JSON: `{"value":"x"}`, Status: 404},
			{Do: "DELETE " + one, As: root, Status: 404},
			{Name: "missing", Do: "POST " + list, As: root, Status: 400, Want: `{"error":"key is missing, value is missing"}`},
			{Name: "bad key", Do: "POST " + list, As: root, JSON: `{"key":"a-b","value":"x"}`, Status: 400, Want: `{"message":{"key":["can contain only letters, digits and '_'."]}}`},
			{Name: "long key", Do: "POST " + list, As: root, JSON: `{"key":"` + strings.Repeat("a", 256) + `","value":"x"}`, Status: 400},
			{Name: "longest key", Do: "POST " + list, As: root, JSON: `{"key":"` + strings.Repeat("a", 255) + `","value":"x"}`, Status: 201},
			{Name: "delete it", Do: "DELETE " + list + "/" + strings.Repeat("a", 255), As: root, Status: 204},
			{Name: "long value", Do: "POST " + list, As: root, JSON: `{"key":"A","value":"` + strings.Repeat("ä", 10001) + `"}`, Status: 400, Want: `{"message":{"value":["is too long (maximum is 10000 characters)"]}}`},
			{Name: "longest value", Do: "POST " + list, As: root, JSON: `{"key":"LONG","value":"` + strings.Repeat("ä", 10000) + `"}`, Status: 201},
			{Name: "bad type", Do: "POST " + list, As: root, JSON: `{"key":"A","value":"x","variable_type":"var"}`, Status: 400, Want: `{"error":"variable_type does not have a valid value"}`},
			{Name: "not maskable", Do: "POST " + list, As: root, JSON: `{"key":"A","value":"short","masked":true}`, Status: 400, Want: `{"message":{"value":["<any>"]}}`},
			{Name: "create", Do: "POST " + list, As: root, JSON: `{"key":"DEPLOY_KEY","value":"s3cret-value","masked":true,"description":"for deploys"}`, Status: 201,
				Want: `{"key":"DEPLOY_KEY","value":"s3cret-value","variable_type":"env_var","protected":false,"masked":true,"raw":false,"description":"for deploys"}`},
			{Name: "taken", Do: "POST " + list, As: root, JSON: `{"key":"DEPLOY_KEY","value":"x"}`, Status: 400, Want: `{"message":{"key":["(DEPLOY_KEY) has already been taken"]}}`},
			{Name: "get", Do: "GET " + one, As: root, Status: 200, Want: `{"value":"s3cret-value"}`},
			{Name: "update needs a value", Do: "PUT " + one, As: root, JSON: `{"protected":true}`, Status: 400, Want: `{"error":"value is missing"}`},
			{Name: "update", Do: "PUT " + one, As: root, Form: url.Values{"value": {"another-value"}, "protected": {"true"}, "raw": {"1"}, "variable_type": {"file"}}, Status: 200,
				Want: `{"key":"DEPLOY_KEY","value":"another-value","variable_type":"file","protected":true,"masked":true,"raw":true,"description":"for deploys"}`},
			{Name: "list", Do: "GET " + list, As: root, Status: 200, Want: `[{"key":"LONG"},{"key":"DEPLOY_KEY","value":"another-value"}]`, WantHeader: map[string]string{"X-Total": "2"}},
			{Name: "stale delete", Do: "DELETE " + one, As: root, Header: map[string]string{"If-Unmodified-Since": "Mon, 02 Jan 2006 15:04:05 GMT"}, Status: 412},
		})
		var stored string
		if err := s.DB.QueryRowContext(t.Context(), `SELECT value FROM instance_variables WHERE key = 'DEPLOY_KEY'`).Scan(&stored); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(stored, "another-value") || stored == "" {
			t.Errorf("stored in the clear: %q", stored)
		}
		s.Check(t, apptest.Call{Name: "recorded, without the value", Do: "GET /audit_events?entity_type=Svc::Audit::InstanceScope&per_page=2", As: root, Status: 200, Not: []string{"another-value", "s3cret-value"},
			Want: `[{"event_type":"ci_instance_variable_updated","target_type":"Ci::InstanceVariable","target_details":"DEPLOY_KEY","author_name":"Administrator"},{"event_type":"ci_instance_variable_created"}]`})
		if strings.Contains(s.Log(), "another-value") {
			t.Error("the value stands in the log")
		}
		if n, err := s.RotateKey(t.Context()); err != nil || n != 2 {
			t.Errorf("rotate: %d, %v", n, err)
		}
		s.Check(t, apptest.Call{Name: "after a rotation of the key", Do: "GET " + one, As: root, Status: 200, Want: `{"value":"another-value"}`})
		s.Check(t, apptest.Call{Do: "DELETE " + one, As: root, Status: 204})
		s.Check(t, apptest.Call{Do: "GET " + one, As: root, Status: 404})

		s.Check(t, apptest.Call{Do: "PUT /application/settings?max_instance_variables=3", As: root, Status: 200})
		for i := range 2 {
			s.Check(t, apptest.Call{Do: "POST " + list, As: root, JSON: fmt.Sprintf(`{"key":"K%d","value":"v"}`, i), Status: 201})
		}
		s.Check(t, apptest.Call{Name: "as many as allowed", Do: "POST " + list, As: root, JSON: `{"key":"K3","value":"v"}`, Status: 400, Want: `{"message":{"base":["Maximum number of instance-level variables (3) exceeded"]}}`})
	})
}
