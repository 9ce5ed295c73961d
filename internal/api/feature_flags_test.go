package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/project"
)

func TestFeatureFlags(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: `{"name":"p"}`, Status: 201})
		const at = "/projects/alice%2Fp/feature_flags"
		const lists = "/projects/alice%2Fp/feature_flags_user_lists"
		strategy := func(name, parameters string) string {
			return fmt.Sprintf(`{"name":"flag","strategies":[{"name":"%s","parameters":%s,"scopes":[{"environment_scope":"production"}]}]}`, name, parameters)
		}
		s.Table(t, []apptest.Call{
			{Name: "none", Do: "GET " + at, As: alice, Status: 200, Want: `[]`},
			{Name: "list", Do: "POST " + lists, As: alice, JSON: `{"name":"beta","user_xids":"a, b"}`, Status: 201, Want: `{"id":1,"iid":1,"name":"beta","user_xids":"a, b","project_id":1}`},
			{Name: "name taken", Do: "POST " + lists, As: alice, JSON: `{"name":"beta","user_xids":"a"}`, Status: 400},
			{Name: "twice", Do: "POST " + lists, As: alice, JSON: `{"name":"x","user_xids":"a,a"}`, Status: 400},
			{Name: "no IDs", Do: "POST " + lists, As: alice, JSON: `{"name":"x","user_xids":"a,,b"}`, Status: 400},
			{Name: "change the list", Do: "PUT " + lists + "/1", As: alice, JSON: `{"user_xids":"a,b,c"}`, Status: 200, Want: `{"name":"beta","user_xids":"a,b,c"}`},
			{Name: "search", Do: "GET " + lists + "?search=BET", As: alice, Status: 200, Want: `[{"iid":1}]`},
			{Name: "search nothing", Do: "GET " + lists + "?search=zz", As: alice, Status: 200, Want: `[]`},

			{Name: "bad name", Do: "POST " + at, As: alice, JSON: `{"name":"Bad Name"}`, Status: 400, Want: `{"message":{"name":["<any>"]}}`},
			{Name: "name ends", Do: "POST " + at, As: alice, JSON: `{"name":"bad-"}`, Status: 400},
			{Name: "long name", Do: "POST " + at, As: alice, JSON: `{"name":"` + strings.Repeat("a", 64) + `"}`, Status: 400},
			{Name: "legacy", Do: "POST " + at, As: alice, JSON: `{"name":"flag","version":"legacy_flag"}`, Status: 400},
			{Name: "legacy scopes", Do: "POST " + at, As: alice, JSON: `{"name":"flag","scopes":[]}`, Status: 400},
			{Name: "unknown strategy", Do: "POST " + at, As: alice, JSON: strategy("x", `{}`), Status: 400},
			{Name: "missing parameters", Do: "POST " + at, As: alice, JSON: strategy("userWithId", `{}`), Status: 400},
			{Name: "extra parameters", Do: "POST " + at, As: alice, JSON: strategy("default", `{"a":"b"}`), Status: 400},
			{Name: "parameters of another type", Do: "POST " + at, As: alice, JSON: strategy("userWithId", `{"userIds":5}`), Status: 400},
			{Name: "parameters are a list", Do: "POST " + at, As: alice, JSON: strategy("userWithId", `[1]`), Status: 400},
			{Name: "101 percent", Do: "POST " + at, As: alice, JSON: strategy("gradualRolloutUserId", `{"groupId":"default","percentage":"101"}`), Status: 400},
			{Name: "stickiness", Do: "POST " + at, As: alice, JSON: strategy("flexibleRollout", `{"groupId":"default","rollout":"5","stickiness":"x"}`), Status: 400},
			{Name: "group", Do: "POST " + at, As: alice, JSON: strategy("flexibleRollout", `{"groupId":"Default","rollout":"5","stickiness":"random"}`), Status: 400},
			{Name: "no list", Do: "POST " + at, As: alice, JSON: strategy("gitlabUserList", `{}`), Status: 400},
			{Name: "many strategies", Do: "POST " + at, As: alice, JSON: `{"name":"flag","strategies":[` + strings.TrimSuffix(strings.Repeat(`{"name":"default","parameters":{}},`, 51), ",") + `]}`, Status: 400},
			{Name: "create", Do: "POST " + at, As: alice, JSON: strategy("gradualRolloutUserId", `{"groupId":"default","percentage":"50"}`), Status: 201, Want: `{"name":"flag","description":"","active":true,"version":"new_version_flag",
				"scopes":[],"strategies":[{"id":1,"name":"gradualRolloutUserId","parameters":{"groupId":"default","percentage":"50"},"scopes":[{"id":1,"environment_scope":"production"}],"user_list":null}]}`},
			{Name: "taken", Do: "POST " + at, As: alice, JSON: `{"name":"flag"}`, Status: 400},
			{Name: "change", Do: "PUT " + at + "/flag", As: alice, JSON: `{"description":"d","strategies":[{"id":1,"parameters":"{\"groupId\":\"default\",\"percentage\":\"60\"}","scopes":[{"id":1,"_destroy":true},{"environment_scope":"staging"}]},
				{"name":"gitlabUserList","parameters":{},"user_list_id":1,"scopes":[{"environment_scope":"review/*"}]}]}`, Status: 200,
				Want: `{"name":"flag","description":"d","strategies":[{"id":1,"parameters":{"percentage":"60","groupId":"default"},"scopes":[{"id":2,"environment_scope":"staging"}]},
					{"id":2,"name":"gitlabUserList","parameters":{},"user_list":{"id":1,"iid":1,"name":"beta","user_xids":"a,b,c"}}]}`},
			{Name: "a strategy of another flag", Do: "PUT " + at + "/flag", As: alice, JSON: `{"strategies":[{"id":99,"_destroy":true}]}`, Status: 404},
			{Name: "list in use", Do: "DELETE " + lists + "/1", As: alice, Status: 409, Want: `{"message":"User list is associated with a strategy"}`},
			{Name: "remove a strategy, rename", Do: "PUT " + at + "/flag", As: alice, JSON: `{"name":"other","active":false,"strategies":[{"id":2,"_destroy":true}]}`, Status: 200, Want: `{"name":"other","active":false,"strategies":[{"id":1}]}`},
			{Name: "enabled", Do: "GET " + at + "?scope=enabled", As: alice, Status: 200, Want: `[]`},
			{Name: "disabled", Do: "GET " + at + "?scope=disabled", As: alice, Status: 200, Want: `[{"name":"other"}]`},
			{Name: "odd scope", Do: "GET " + at + "?scope=x", As: alice, Status: 400},
			{Name: "old name", Do: "GET " + at + "/flag", As: alice, Status: 404},
			{Name: "list is free", Do: "DELETE " + lists + "/1", As: alice, Status: 204},
			{Name: "delete", Do: "DELETE " + at + "/other", As: alice, Status: 200, Want: `{"name":"other"}`},
			{Name: "gone", Do: "GET " + at + "/other", As: alice, Status: 404},
			{Name: "form", Do: "POST " + at, As: alice, Form: url.Values{"name": {"ab"}, "strategies[][name]": {"userWithId"}, "strategies[][parameters]": {`{"userIds":"1"}`}}, Status: 201},
			{Name: "audit", Do: "GET /projects/alice%2Fp/audit_events?per_page=100", As: alice, Status: 200},
		})
	})
}

// TestUnleash polls the flags as Unleash clients do.
func TestUnleash(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		aliceID, alice := s.User(t, "alice")
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: `{"name":"p"}`, Status: 201})
		const at, flags = "/feature_flags/unleash/1", "/projects/1/feature_flags"
		s.Check(t, apptest.Call{Name: "no client yet", Do: "GET " + at + "/client/features", Header: map[string]string{"UNLEASH-INSTANCEID": "x"}, Status: 401})
		by := actor.Actor{ID: aliceID, Username: "alice"}
		id, err := s.Flags.InstanceID(t.Context(), by, project.RefTo(1))
		if err != nil {
			t.Fatal(err)
		}
		again, err := s.Flags.InstanceID(t.Context(), by, project.RefTo(1))
		if err != nil || again != id {
			t.Errorf("the instance ID changed: %v", err)
		}
		as := func(environment string) map[string]string {
			return map[string]string{"UNLEASH-INSTANCEID": id, "UNLEASH-APPNAME": environment}
		}
		features := "GET " + at + "/client/features"
		s.Table(t, []apptest.Call{
			{Name: "list", Do: "POST /projects/1/feature_flags_user_lists", As: alice, JSON: `{"name":"beta","user_xids":"a,b"}`, Status: 201},
			{Name: "all", Do: "POST " + flags, As: alice, JSON: `{"name":"all","description":"d","strategies":[{"name":"default","parameters":{},"scopes":[{"environment_scope":"*"}]}]}`, Status: 201},
			{Name: "reviews", Do: "POST " + flags, As: alice, JSON: `{"name":"reviews","active":false,"strategies":[{"name":"gitlabUserList","user_list_id":1,"scopes":[{"environment_scope":"review/*/x"}]}]}`, Status: 201},
			{Name: "nowhere", Do: "POST " + flags, As: alice, JSON: `{"name":"nowhere"}`, Status: 201},
			{Name: "production", Do: features, Header: as("production"), Status: 200,
				Want: `{"version":1,"features":[{"name":"all","description":"d","enabled":true,"strategies":[{"name":"default","parameters":{}}]}]}`},
			{Name: "deprecated path", Do: "GET " + at + "/features", Header: as("production"), Status: 200, Want: `{"features":[{"name":"all"}]}`},
			{Name: "review", Do: features, Header: as("review/7/x"), Status: 200,
				Want: `{"features":[{"name":"all"},{"name":"reviews","enabled":false,"strategies":[{"name":"userWithId","parameters":{"userIds":"a,b"}}]}]}`},
			{Name: "by query", Do: features + "?instance_id=" + id + "&app_name=production", Status: 200},
			{Name: "no credential", Do: features, Status: 401},
			{Name: "a token is none", Do: features, As: alice, Status: 401},
			{Name: "another project", Do: "GET /feature_flags/unleash/2/client/features", Header: as("production"), Status: 401},
			{Name: "ping", Do: "GET " + at, Header: as(""), Status: 200},
			{Name: "register", Do: "POST " + at + "/client/register", Header: as("x"), JSON: `{"appName":"x"}`, Status: 200},
			{Name: "metrics", Do: "POST " + at + "/client/metrics", Header: as("x"), JSON: `{"bucket":{}}`, Status: 200},
			{Name: "register without", Do: "POST " + at + "/client/register", JSON: `{}`, Status: 401},
			{Name: "a long name", Do: features, Header: as(strings.Repeat("x", 256)), Status: 400},
			{Name: "switch off", Do: "PUT " + flags + "/all", As: alice, JSON: `{"active":false}`, Status: 200},
			{Name: "seen at once", Do: features, Header: as("production"), Status: 200, Want: `{"features":[{"name":"all","enabled":false}]}`},
			{Name: "change the list", Do: "PUT /projects/1/feature_flags_user_lists/1", As: alice, JSON: `{"user_xids":"z"}`, Status: 200},
			{Name: "seen too", Do: features, Header: as("review/7/x"), Status: 200, Want: `{"features":[{"name":"all"},{"strategies":[{"parameters":{"userIds":"z"}}]}]}`},
		})
		tag := s.Check(t, apptest.Call{Do: features, Header: as("production"), Status: 200}).Header.Get("ETag")
		same := as("production")
		same["If-None-Match"] = tag
		s.Check(t, apptest.Call{Name: "not modified", Do: features, Header: same, Status: 304})
		s.Check(t, apptest.Call{Do: "PUT /projects/1", As: alice, JSON: `{"feature_flags_access_level":"disabled"}`, Status: 200})
		s.Check(t, apptest.Call{Name: "switched off", Do: features, Header: as("production"), Status: 401})
		s.Check(t, apptest.Call{Do: "PUT /projects/1", As: alice, JSON: `{"feature_flags_access_level":"enabled"}`, Status: 200})
		if _, err := s.Flags.ResetInstanceID(t.Context(), by, project.RefTo(1)); err != nil {
			t.Fatal(err)
		}
		s.Check(t, apptest.Call{Name: "the old instance ID", Do: features, Header: as("production"), Status: 401})
	})
}
