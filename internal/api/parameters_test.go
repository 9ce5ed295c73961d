package api_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/db/dbtest"
	"svc/internal/project"
)

// TestRefusedParameters sends parameters of features that svc does not have.
func TestRefusedParameters(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		g := group(t, s, alice, "g", "")
		s.Table(t, []apptest.Call{
			{Name: "one", Do: "POST /projects", As: alice, JSON: `{"path":"p","template_name":"x"}`, Status: 400, Want: `{"error":"template_name is not supported"}`},
			{Name: "two", Do: "POST /projects?template_name=x&template_project_id=1&path=p", As: alice, Status: 400, Want: `{"error":"template_name is not supported, template_project_id is not supported"}`},
			{Name: "nothing was made", Do: "GET /projects/alice%2Fp", As: alice, Status: 404},
			{Name: "values that ask for nothing", Do: "POST /projects", As: alice, Status: 201,
				JSON: `{"path":"p","import_url":"","mirror":false,"mirror_trigger_builds":null,"template_project_id":0,"container_expiration_policy_attributes":{},"resource_group_default_process_mode":"unordered"}`},
			{Name: "an object", Do: "PUT /projects/alice%2Fp", As: alice, JSON: `{"container_expiration_policy_attributes":{"enabled":true}}`, Status: 400, Want: `{"error":"container_expiration_policy_attributes is not supported"}`},
			{Name: "in a form", Do: "PUT /projects/alice%2Fp?container_expiration_policy_attributes[enabled]=true", As: alice, Status: 400},
			{Name: "group", Do: fmt.Sprintf("PUT /groups/%d", g), As: alice, JSON: `{"ip_restriction_ranges":"10.0.0.0/8"}`, Status: 400, Want: `{"error":"ip_restriction_ranges is not supported"}`},
			{Name: "two factors", Do: fmt.Sprintf("PUT /groups/%d", g), As: alice, JSON: `{"require_two_factor_authentication":true,"auto_devops_enabled":true}`, Status: 400,
				Want: `{"error":"auto_devops_enabled is not supported, require_two_factor_authentication is not supported"}`},
			{Name: "two factors of a new group", Do: "POST /groups", As: alice, JSON: `{"name":"h","path":"h","require_two_factor_authentication":true}`, Status: 400},
			{Name: "group, off", Do: fmt.Sprintf("PUT /groups/%d", g), As: alice, JSON: `{"require_two_factor_authentication":false,"two_factor_grace_period":48,"auto_devops_enabled":false}`, Status: 200,
				Want: `{"require_two_factor_authentication":false,"two_factor_grace_period":48,"auto_devops_enabled":false}`},
			{Name: "grace period", Do: fmt.Sprintf("PUT /groups/%d", g), As: alice, JSON: `{"two_factor_grace_period":24}`, Status: 400, Want: `{"error":"two_factor_grace_period is not supported"}`},
			{Name: "fork pipelines", Do: "PUT /projects/alice%2Fp", As: alice, JSON: `{"ci_allow_fork_pipelines_to_run_in_parent_project":true,"container_registry_enabled":true}`, Status: 400,
				Want: `{"error":"ci_allow_fork_pipelines_to_run_in_parent_project is not supported, container_registry_enabled is not supported"}`},
			{Name: "registry of a new project", Do: "POST /projects", As: alice, JSON: `{"path":"q","container_registry_enabled":true}`, Status: 400, Want: `{"error":"container_registry_enabled is not supported"}`},
			{Name: "fork pipelines, off", Do: "PUT /projects/alice%2Fp", As: alice, JSON: `{"ci_allow_fork_pipelines_to_run_in_parent_project":false,"container_registry_enabled":false}`, Status: 200,
				Want: `{"ci_allow_fork_pipelines_to_run_in_parent_project":false,"container_registry_enabled":false}`},
			{Name: "merging", Do: "PUT /projects/alice%2Fp", As: alice, JSON: `{"merge_pipelines_enabled":true,"merge_trains_enabled":true}`, Status: 400,
				Want: `{"error":"merge_pipelines_enabled is not supported, merge_trains_enabled is not supported"}`},
			{Name: "new project", Do: "POST /projects", As: alice, JSON: `{"path":"q","service_desk_enabled":true,"auto_devops_enabled":true}`, Status: 400,
				Want: `{"error":"auto_devops_enabled is not supported, service_desk_enabled is not supported"}`},
			{Name: "project, off", Do: "PUT /projects/alice%2Fp", As: alice, JSON: `{"merge_trains_enabled":false,"service_desk_enabled":false,"auto_devops_enabled":false,"auto_devops_deploy_strategy":"manual"}`, Status: 200,
				Want: `{"merge_pipelines_enabled":false,"merge_trains_enabled":false,"resolve_outdated_diff_discussions":false,"service_desk_enabled":false,"auto_devops_enabled":false,"auto_devops_deploy_strategy":"manual"}`},
			{Name: "a scheduled merge", Do: "PUT /projects/alice%2Fp/merge_requests/1", As: alice, JSON: `{"merge_after":"2030-01-01T00:00:00Z"}`, Status: 400, Want: `{"error":"merge_after is not supported"}`},
			{Name: "setting", Do: "PUT /application/settings?akismet_enabled=true", As: root, Status: 400, Want: `{"error":"akismet_enabled is not supported"}`},
			{Name: "setting off", Do: "PUT /application/settings?akismet_enabled=false", As: root, Status: 200},
			{Name: "who may not call says nothing of parameters", Do: "PUT /projects/alice%2Fp?max_artifacts_size=1", Status: 401},
			{Name: "other names", Do: "PUT /projects/alice%2Fp", As: alice, JSON: `{"emails_disabled":true,"restrict_user_defined_variables":true,"show_default_award_emojis":false,"public_builds":false}`, Status: 200,
				Want: `{"emails_enabled":false,"emails_disabled":true,"restrict_user_defined_variables":true,"ci_pipeline_variables_minimum_override_role":"maintainer","show_default_award_emojis":false,"public_jobs":false,"public_builds":false}`},
		})
	})
}

// TestRefusedParameterList sends every parameter that is listed as refused in
// parameters.txt.
func TestRefusedParameterList(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("parameters.txt")
	if err != nil {
		t.Fatal(err)
	}
	s := apptest.Start(t, dbtest.SQLite(t)) // the parameters are refused before any query
	placeholder := regexp.MustCompile(`\{[^}]*\}`)
	sent := 0
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) < 5 || words[0] == "#" || !strings.HasPrefix(words[3], "refused") {
			continue
		}
		for name := range strings.SplitSeq(words[2], ",") {
			call := apptest.Call{Do: words[0] + " " + placeholder.ReplaceAllString(words[1], "1"), As: root, Status: 400}
			if words[0] == "GET" || words[0] == "DELETE" {
				call.Do += "?" + name + "=x"
			} else {
				call.JSON = fmt.Sprintf(`{%q:"x"}`, name)
			}
			if body := string(s.Check(t, call).Body); !strings.Contains(body, name+" is not supported") {
				t.Errorf("%s %s %s: %s", words[0], words[1], name, body)
			}
			sent++
		}
	}
	if sent < 500 {
		t.Errorf("sent %d parameters", sent)
	}
}

// TestProjectShape checks fields of projects that clients read.
func TestProjectShape(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id := newProject(t, s, alice, "p", `,"visibility":"public"`)
		at := fmt.Sprintf("/projects/%d", id)
		api := s.URL + "/api/v4" + at
		mit := `MIT License\n\nPermission is hereby granted, free of charge, to any person obtaining\na copy of this software ... WITHOUT WARRANTY OF ANY KIND`
		s.Table(t, []apptest.Call{
			{Name: "links", Do: "GET " + at, As: alice, Status: 200, Want: fmt.Sprintf(`{"_links":{"self":%[1]q,"issues":"%[2]s/issues","merge_requests":"%[2]s/merge_requests","repo_branches":"%[2]s/repository/branches",
				"labels":"%[2]s/labels","events":"%[2]s/events","members":"%[2]s/members","cluster_agents":"%[2]s/cluster_agents"},
				"permissions":{"project_access":{"access_level":50,"notification_level":3}},"open_issues_count":0,"container_registry_enabled":false,"can_create_merge_request_in":true}`, api, api)},
			{Do: "PUT " + at + "/notification_settings", As: alice, JSON: `{"level":"watch"}`, Status: 200},
			{Do: "POST " + at + "/issues", As: alice, JSON: `{"title":"i"}`, Status: 201},
			{Do: "POST " + at + "/issues", As: alice, JSON: `{"title":"c","confidential":true}`, Status: 201},
			{Name: "levels and counts", Do: "GET /projects?owned=true", As: alice, Status: 200, Want: `[{"permissions":{"project_access":{"notification_level":2}},"open_issues_count":2}]`},
			{Name: "as others see them", Do: "GET " + at, As: root, Status: 200, Want: `{"open_issues_count":2}`},
			{Name: "a branch of an empty repository", Do: "POST " + at + "/repository/branches?branch=topic&ref=main", As: alice, Status: 201, Want: `{"name":"topic","default":false}`},
			{Name: "has the default branch first", Do: "GET " + at + "/repository/branches", As: alice, Status: 200, Want: `[{"name":"main","default":true},{"name":"topic"}]`},
			{Name: "no license", Do: "GET " + at + "?license=true", As: alice, Status: 200, Want: `{"license":null,"license_url":null}`},
			{Name: "no license, for anonymous callers", Do: "GET " + at + "?license=true", Status: 200, Want: `{"license":null,"license_url":null}`},
			{Name: "no custom attributes", Do: "GET " + at + "?with_custom_attributes=true", As: root, Status: 200, Want: `{"custom_attributes":[]}`},
			{Name: "no custom attributes, in lists", Do: "GET /projects?with_custom_attributes=true", As: root, Status: 200, Want: `[{"custom_attributes":[]}]`},
			{Name: "custom attributes, not for others", Do: "GET " + at + "?with_custom_attributes=true", As: alice, Status: 200, Not: []string{`"custom_attributes"`}},
			{Name: "no custom attributes of a user", Do: "GET /users/1?with_custom_attributes=true", As: root, Status: 200, Want: `{"custom_attributes":[]}`},
			{Do: "POST " + at + "/repository/files/LICENSE", As: alice, JSON: `{"branch":"main","commit_message":"c","content":"` + mit + `"}`, Status: 201},
			{Name: "license", Do: "GET " + at + "?license=true", As: alice, Status: 200, Want: fmt.Sprintf(`{"license":{"key":"mit","name":"MIT License","nickname":null},"license_url":%q}`, s.URL+"/alice/p/-/blob/main/LICENSE")},
			{Name: "license, for anonymous callers", Do: "GET " + at + "?license=true", Status: 200, Want: `{"license":{"key":"mit"}}`},
			{Name: "not asked for", Do: "GET " + at, As: alice, Status: 200, Not: []string{`"license"`, `"license_url"`}},
		})
	})
}

// TestDefaultBranchProtection checks that the default branches of new projects get
// the protection set in groups and the instance.
func TestDefaultBranchProtection(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		g := group(t, s, alice, "g", `,"default_branch_protection":1`)
		sub := group(t, s, alice, "sub", fmt.Sprintf(`,"parent_id":%d`, g))
		rules := func(namespace int64, path string) string {
			id := newProject(t, s, alice, path, fmt.Sprintf(`,"namespace_id":%d,"initialize_with_readme":true`, namespace))
			return fmt.Sprintf("GET /projects/%d/protected_branches", id)
		}
		level := func(push, merge project.Level) string {
			return fmt.Sprintf(`[{"name":"main","push_access_levels":[{"access_level":%d}],"merge_access_levels":[{"access_level":%d}],"allow_force_push":false}]`, push, merge)
		}
		s.Table(t, []apptest.Call{
			{Name: "of the group", Do: rules(g, "a"), As: alice, Status: 200, Want: level(30, 40)},
			{Name: "of the group above", Do: rules(sub, "b"), As: alice, Status: 200, Want: level(30, 40)},
			{Name: "read back", Do: fmt.Sprintf("GET /groups/%d", g), As: alice, Status: 200,
				Want: `{"default_branch_protection":1,"default_branch_protection_defaults":{"allowed_to_push":[{"access_level":30}],"allow_force_push":false,"allowed_to_merge":[{"access_level":40}],"developer_can_initial_push":false}}`},
			{Name: "in detail", Do: fmt.Sprintf("PUT /groups/%d", sub), As: alice, Status: 200, JSON: `{"default_branch_protection_defaults":{"allowed_to_push":[{"access_level":0}],"allowed_to_merge":[{"access_level":30}]}}`,
				Want: `{"default_branch_protection":3}`},
			{Name: "wrong", Do: fmt.Sprintf("PUT /groups/%d?default_branch_protection=7", sub), As: alice, Status: 400},
		})
		s.Table(t, []apptest.Call{
			{Name: "its own", Do: rules(sub, "c"), As: alice, Status: 200, Want: level(0, 30)},
			{Name: "none", Do: fmt.Sprintf("PUT /groups/%d?default_branch_protection=0", sub), As: alice, Status: 200, Want: `{"default_branch_protection":0}`},
		})
		s.Table(t, []apptest.Call{
			{Name: "not protected", Do: rules(sub, "d"), As: alice, Status: 200, Want: `[]`},
			{Name: "of the instance", Do: "PUT /application/settings?default_branch_protection=3", As: root, Status: 200, Want: `{"default_branch_protection":3}`},
		})
		id := newProject(t, s, alice, "own", `,"initialize_with_readme":true`)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/protected_branches", id), As: alice, Status: 200, Want: level(40, 30)})
	})
}

// TestPreventForking checks that projects of a group cannot be forked outside it.
func TestPreventForking(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		g := group(t, s, alice, "g", `,"prevent_forking_outside_group":true`)
		sub := group(t, s, alice, "sub", fmt.Sprintf(`,"parent_id":%d`, g))
		id := newProject(t, s, alice, "p", fmt.Sprintf(`,"namespace_id":%d,"initialize_with_readme":true`, g))
		s.Table(t, []apptest.Call{
			{Name: "outside", Do: fmt.Sprintf("POST /projects/%d/fork", id), As: alice, Status: 403},
			{Name: "inside", Do: fmt.Sprintf("POST /projects/%d/fork?namespace_id=%d", id, sub), As: alice, Status: 201},
		})
	})
}

// TestRateLimitText checks that refused requests get the text that an administrator
// has set.
func TestRateLimitText(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		s.Clock.Stop()
		s.Table(t, []apptest.Call{
			{Do: "PUT /application/settings", As: root, Status: 200, JSON: `{"rate_limiting_response_text":"Wait a minute.","throttle_unauthenticated_api_enabled":true,"throttle_unauthenticated_api_requests_per_period":1}`,
				Want: `{"rate_limiting_response_text":"Wait a minute."}`},
			{Do: "GET /projects", Status: 200},
			{Name: "limited", Do: "GET /projects", Status: 429, Text: "Wait a minute.\n"},
		})
	})
}
