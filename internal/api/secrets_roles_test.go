package api_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/project"
)

// TestReadOnlyTokenSeesNoSecrets reads every GET endpoint of a project and its group
// with an Owner's token with only read_api: no response contains a secret that a
// token with api can read.
func TestReadOnlyTokenSeesNoSecrets(t *testing.T) {
	t.Parallel()
	rows := placeRows(t)
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		st := newPlaceFixture(t, s)
		at := st.build(t, project.Private)
		fillRepository(t, s, at.project)
		reader := s.Token(t, st.ids["owner"], "read_api")
		in := fmt.Sprintf("/projects/%d", at.project)
		secretOf := func(do, body, field string) string {
			var made map[string]any
			s.Send(t, apptest.Call{Do: do, JSON: body, As: st.tokens["owner"]}).JSON(t, &made)
			value, _ := made[field].(string)
			if len(value) < 10 {
				t.Fatalf("%s: %s is %q", do, field, value)
			}
			return value
		}
		trigger := secretOf("POST "+in+"/triggers", `{"description":"x"}`, "token")
		integration := secretOf("POST "+in+"/alert_management/http_integrations", `{"name":"x"}`, "token")
		key := secretOf("POST "+in+"/error_tracking/client_keys", ``, "public_key")
		secrets := map[string]string{
			"trigger token": trigger, "integration token": integration, "client key": key,
			"project registration token": secretOf("GET "+in, "", "runners_token"),
			"group registration token":   secretOf(fmt.Sprintf("GET /groups/%d", at.group), "", "runners_token"),
		}
		there := strings.NewReplacer("/triggers/999999", "/triggers/1", "/http_integrations/999999", "/http_integrations/1")
		read := func(token string) map[string]bool {
			shown := map[string]bool{}
			for _, endpoint := range slices.Sorted(maps.Keys(rows)) {
				if !strings.HasPrefix(endpoint, "GET ") {
					continue
				}
				r := rows[endpoint]
				r.do = there.Replace(r.do)
				st.tokens["reader"] = token
				body := string(st.send(t, endpoint, r, "reader", at).Body)
				for name, value := range secrets {
					if strings.Contains(body, value) {
						shown[name] = true
						if token == reader {
							t.Errorf("%s shows the %s to a token with read_api", endpoint, name)
						}
					}
				}
			}
			return shown
		}
		read(reader)
		if shown := read(st.tokens["owner"]); len(shown) != len(secrets) {
			t.Errorf("a token with api is shown %v, want all of them", shown)
		}
	})
}

// TestBridgesHidePrivateDownstream lists trigger jobs for a user who cannot see the
// downstream project.
func TestBridgesHidePrivateDownstream(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "")
		other := w.newProject("lib", `job: {script: [x]}`)
		p := w.push("main", "one", map[string]string{".gitlab-ci.yml": `free: {trigger: alice/lib}`})
		w.settled()
		_, reader := s.User(t, "reader")
		s.Check(t, apptest.Call{Do: w.at("PUT", "?visibility=public"), As: w.owner, Status: 200})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d?visibility=private", other), As: w.owner, Status: 200})
		list := w.at("GET", "/pipelines/%d/bridges", p)
		s.Check(t, apptest.Call{Do: list, As: w.owner, Status: 200, Want: `[{"name":"free","downstream_pipeline":{"id":"<any>"}}]`})
		for _, as := range []string{reader, ""} {
			s.Check(t, apptest.Call{Do: list, As: as, Status: 200, Want: `[{"name":"free","downstream_pipeline":null}]`, Not: []string{"alice/lib"}})
		}
	})
}

// TestRunnersThroughShares compares the list of runners with the responses for
// single runners, for a member of a group that the group and the project of the
// runners are shared with.
func TestRunnersThroughShares(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, owner := s.User(t, "owner")
		guestID, guest := s.User(t, "invited")
		from, invited := group(t, s, owner, "from", ""), group(t, s, owner, "invited-group", "")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /groups/%d/members", invited), JSON: fmt.Sprintf(`{"user_id":%d,"access_level":50}`, guestID), As: owner, Status: 201})
		alone := newProject(t, s, owner, "alone", "")
		var ids []int64
		for _, body := range []string{
			fmt.Sprintf(`{"runner_type":"group_type","group_id":%d}`, from),
			fmt.Sprintf(`{"runner_type":"project_type","project_id":%d}`, newProject(t, s, owner, "inside", fmt.Sprintf(`,"namespace_id":%d`, from))),
			fmt.Sprintf(`{"runner_type":"project_type","project_id":%d}`, alone),
		} {
			ids = append(ids, made(t, s, owner, "POST /user/runners", body))
		}
		for _, share := range []string{fmt.Sprintf("POST /groups/%d/share", from), fmt.Sprintf("POST /projects/%d/share", alone)} {
			s.Check(t, apptest.Call{Do: share, JSON: fmt.Sprintf(`{"group_id":%d,"group_access":%d}`, invited, map[bool]int{true: 50, false: 40}[strings.Contains(share, "groups")]), As: owner, Status: 201})
		}
		var listed []struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "GET /runners", As: guest, Status: 200}).JSON(t, &listed)
		var got []int64
		for _, r := range listed {
			got = append(got, r.ID)
		}
		slices.Sort(got)
		if !slices.Equal(got, ids) {
			t.Errorf("the list has %v, want %v", got, ids)
		}
		for _, id := range ids {
			s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /runners/%d", id), As: guest, Status: 200})
		}
		_, stranger := s.User(t, "stranger")
		s.Check(t, apptest.Call{Do: "GET /runners", As: stranger, Status: 200, Want: `[]`})
		for _, id := range ids {
			s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /runners/%d", id), As: stranger, Status: 403})
		}
	})
}
