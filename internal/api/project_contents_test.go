package api_test

import (
	"fmt"
	"testing"
	"time"

	"svc/internal/app/apptest"
)

// commitFile returns a call that commits a file to a branch.
func commitFile(project int64, branch, path, content string) apptest.Call {
	return apptest.Call{Do: fmt.Sprintf("POST /projects/%d/repository/files/%s", project, path), Status: 201,
		JSON: fmt.Sprintf(`{"branch":%q,"commit_message":"m","content":%q}`, branch, content)}
}

func TestProjectContents(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		id := newProject(t, s, alice, "code", `,"initialize_with_readme":true,"visibility":"public"`)
		other := newProject(t, s, alice, "other", `,"visibility":"internal"`)
		at := fmt.Sprintf("/projects/%d", id)
		as := func(who string, c apptest.Call) apptest.Call { c.As = who; return c }
		blob := func(path string) string {
			return fmt.Sprintf(`{"readme_url":"%s/alice/code/-/blob/main/%s"}`, s.URL, path)
		}
		s.Table(t, []apptest.Call{
			{Do: "GET " + at, As: alice, Status: 200, Want: blob("README.md")},
			as(alice, commitFile(id, "main", "main.go", "package main\n")),
			{Name: "another one beside it", Do: "POST " + at + "/repository/files/README.rst", As: alice, JSON: `{"branch":"main","commit_message":"m","content":"x"}`, Status: 201},
			{Do: "DELETE " + at + "/repository/files/README.md", As: alice, JSON: `{"branch":"main","commit_message":"m"}`, Status: 204},
			{Do: "GET " + at, Status: 200, Want: blob("README.rst")},
			{Do: "DELETE " + at + "/repository/files/README.rst", As: alice, JSON: `{"branch":"main","commit_message":"m"}`, Status: 204},
			{Do: "GET " + at, As: alice, Status: 200, Want: `{"readme_url":null}`},
			as(alice, commitFile(other, "main", "x.py", "print(1)\n")),
			as(alice, commitFile(other, "main", "README", "x")),
		})
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Table(t, []apptest.Call{
			{Do: "GET /projects?with_programming_language=go", As: bob, Status: 200, Want: `[{"path":"code"}]`},
			{Do: "GET /projects?with_programming_language=Python", As: bob, Status: 200, Want: `[{"path":"other"}]`},
			{Do: "GET /projects?with_programming_language=python", Status: 200, Want: `[]`},
			{Do: "GET /projects?with_programming_language=cobol", As: bob, Status: 200, Want: `[]`},
			{Name: "who did something", Do: "GET /users/alice/contributed_projects?order_by=id&sort=asc&simple=true", As: bob, Status: 200, Want: `[{"path":"code"},{"path":"other"}]`},
			{Name: "as all users see it", Do: "GET /users/alice/contributed_projects", Status: 200, Want: `[{"path":"code"}]`},
			{Name: "who did nothing", Do: "GET /users/bob/contributed_projects", As: alice, Status: 200, Want: `[]`},
			{Name: "anonymous", Do: "GET /users/nobody/contributed_projects", As: alice, Status: 404},
		})
		s.Clock.Move(367 * 24 * time.Hour)
		s.Check(t, apptest.Call{Name: "long ago", Do: "GET /users/alice/contributed_projects", Status: 200, Want: `[]`})
	})
}

func TestInitialBranch(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		g := group(t, s, alice, "g", `,"default_branch":"trunk"`)
		sub := group(t, s, alice, "sub", fmt.Sprintf(`,"parent_id":%d`, g))
		wanted := newProject(t, s, alice, "wanted", `,"default_branch":"dev"`)
		grouped := newProject(t, s, alice, "grouped", fmt.Sprintf(`,"namespace_id":%d`, sub))
		s.Table(t, []apptest.Call{
			{Name: "kept without a commit", Do: fmt.Sprintf("GET /projects/%d", wanted), As: alice, Status: 200, Want: `{"default_branch":"dev","empty_repo":true}`},
			{Name: "of the group above", Do: fmt.Sprintf("GET /projects/%d", grouped), As: alice, Status: 200, Want: `{"default_branch":"trunk","empty_repo":true}`},
			{Name: "with a commit", Do: "POST /projects", As: alice, JSON: fmt.Sprintf(`{"path":"readme","namespace_id":%d,"initialize_with_readme":true}`, g), Status: 201, Want: `{"default_branch":"trunk"}`},
			{Name: "what is asked for wins", Do: "POST /projects", As: alice, JSON: fmt.Sprintf(`{"path":"own","namespace_id":%d,"default_branch":"mine","initialize_with_readme":true}`, g), Status: 201, Want: `{"default_branch":"mine"}`},
			{Name: "no name of a branch", Do: fmt.Sprintf("PUT /groups/%d", g), As: alice, JSON: `{"default_branch":"a..b"}`, Status: 400, Want: `{"message":{"default_branch":["is not a valid name of a branch"]}}`},
			{Name: "no more", Do: fmt.Sprintf("PUT /groups/%d", g), As: alice, JSON: `{"default_branch":""}`, Status: 200, Want: `{"default_branch":null}`},
			{Name: "the usual one", Do: "POST /projects", As: alice, JSON: fmt.Sprintf(`{"path":"usual","namespace_id":%d}`, sub), Status: 201, Want: `{"default_branch":"main"}`},
			{Name: "the first push to it", Do: fmt.Sprintf("POST /projects/%d/repository/files/a", grouped), As: alice, JSON: `{"branch":"trunk","commit_message":"m","content":"x"}`, Status: 201},
			{Name: "decides", Do: fmt.Sprintf("GET /projects/%d", grouped), As: alice, Status: 200, Want: `{"default_branch":"trunk","empty_repo":false}`},
			{Name: "to another", Do: fmt.Sprintf("POST /projects/%d/repository/files/a", wanted), As: alice, JSON: `{"branch":"main","commit_message":"m","content":"x"}`, Status: 201},
			{Name: "decides too", Do: fmt.Sprintf("GET /projects/%d", wanted), As: alice, Status: 200, Want: `{"default_branch":"main"}`},
		})
	})
}

func TestTopics(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		one := newProject(t, s, alice, "one", `,"topics":["Go","forge"]`)
		two := newProject(t, s, alice, "two", `,"topics":["go"]`)
		var list []struct {
			ID   int64
			Name string
		}
		s.Check(t, apptest.Call{Do: "GET /topics", Status: 200, Want: `[{"name":"Go","title":"Go","description":null,"total_projects_count":2,"organization_id":1,"avatar_url":null},{"name":"forge","total_projects_count":1}]`}).JSON(t, &list)
		golang, forge := list[0].ID, list[1].ID
		// Not every database folds the case of these characters.
		s.Check(t, apptest.Call{Do: "PUT /application/settings?deletion_adjourned_period=0", As: root, Status: 200})
		other := newProject(t, s, alice, "other", `,"topics":["Überblick"]`)
		s.Check(t, apptest.Call{Do: "GET /topics?search=berblick", Status: 200, Want: `[{"name":"Überblick","total_projects_count":1}]`})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d", other), As: alice, JSON: `{"topics":[]}`, Status: 200})
		var gone []struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "GET /topics?search=berblick", Status: 200, Want: `[{"total_projects_count":0}]`}).JSON(t, &gone)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE /topics/%d", gone[0].ID), As: root, Status: 204})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE /projects/%d", other), As: alice, Status: 202})
		web := made(t, s, root, "POST /topics", `{"name":"web","title":"The Web","description":"all of it"}`)
		at := func(id int64) string { return fmt.Sprintf("/topics/%d", id) }
		s.Table(t, []apptest.Call{
			{Name: "as it is called", Do: fmt.Sprintf("GET /projects/%d", two), As: alice, Status: 200, Want: `{"topics":["Go"]}`},
			{Name: "get", Do: "GET " + at(web), Status: 200, Want: fmt.Sprintf(`{"id":%d,"name":"web","title":"The Web","description":"all of it","total_projects_count":0}`, web)},
			{Name: "none", Do: "GET /topics/999999", Status: 404, Want: `{"message":"404 Topic Not Found"}`},
			{Name: "search", Do: "GET /topics?search=OR", Status: 200, Want: `[{"name":"forge"}]`},
			{Name: "unused", Do: "GET /topics?without_projects=true", Status: 200, Want: `[{"name":"web"}]`},
			{Name: "taken", Do: "POST /topics", As: root, JSON: `{"name":"WEB","title":"x"}`, Status: 400, Want: `{"message":{"name":["has already been taken"]}}`},
			{Name: "no name", Do: "POST /topics", As: root, JSON: `{"title":"x"}`, Status: 400, Want: `{"error":"name is missing"}`},
			{Name: "no title", Do: "PUT " + at(web), As: root, JSON: `{"title":" "}`, Status: 400, Want: `{"message":{"title":["can't be blank"]}}`},
			{Name: "not for users", Do: "POST /topics", As: alice, JSON: `{"name":"x","title":"x"}`, Status: 403},
			{Name: "rename", Do: "PUT " + at(golang), As: root, JSON: `{"name":"golang","title":"Go"}`, Status: 200, Want: `{"name":"golang","title":"Go","total_projects_count":2}`},
			{Name: "its projects follow", Do: "GET /projects?topic=golang&order_by=id&sort=asc", As: alice, Status: 200, Want: `[{"topics":["golang","forge"]},{"topics":["golang"]}]`},
			{Name: "by its id", Do: fmt.Sprintf("GET /projects?topic_id=%d", forge), As: alice, Status: 200, Want: `[{"path":"one"}]`},
			{Name: "the same", Do: "POST /topics/merge", As: root, JSON: fmt.Sprintf(`{"source_topic_id":%d,"target_topic_id":%[1]d}`, web), Status: 400, Want: `{"message":"The source topic and the target topic are identical."}`},
			{Name: "merge", Do: "POST /topics/merge", As: root, JSON: fmt.Sprintf(`{"source_topic_id":%d,"target_topic_id":%d}`, golang, forge), Status: 201, Want: fmt.Sprintf(`{"id":%d,"name":"forge","total_projects_count":2}`, forge)},
			{Name: "both have it", Do: "GET /projects?order_by=id&sort=asc", As: alice, Status: 200, Want: `[{"topics":["forge"]},{"topics":["forge"]}]`},
			{Name: "the other is gone", Do: "GET " + at(golang), Status: 404},
			{Name: "fewer", Do: fmt.Sprintf("PUT /projects/%d", two), As: alice, JSON: `{"topics":["web"]}`, Status: 200},
			{Name: "are counted", Do: "GET " + at(forge), Status: 200, Want: `{"total_projects_count":1}`},
			{Name: "delete", Do: "DELETE " + at(web), As: root, Status: 204},
			{Name: "from projects too", Do: fmt.Sprintf("GET /projects/%d", two), As: alice, Status: 200, Want: `{"topics":[]}`},
			{Name: "recorded", Do: "GET /audit_events?entity_type=Svc::Audit::InstanceScope&per_page=3", As: root, Status: 200, Want: `[{"event_type":"topic_deleted","target_details":"web"},{"event_type":"topic_merged"},{"event_type":"topic_updated"}]`},
			{Name: "a project goes", Do: fmt.Sprintf("DELETE /projects/%d", one), As: alice, Status: 202},
		})
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Check(t, apptest.Call{Do: "GET " + at(forge), Status: 200, Want: `{"total_projects_count":0}`})
	})
}

func TestProjectStorage(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id := newProject(t, s, alice, "code", `,"initialize_with_readme":true`)
		at := fmt.Sprintf("/projects/%d", id)
		s.Table(t, []apptest.Call{
			{Do: "GET " + at + "/storage", As: root, Status: 200, Want: fmt.Sprintf(`{"project_id":%d,"disk_path":"projects/%02x/%[1]d","created_at":"<any>","repository_storage":"default"}`, id, id%256)},
			{Do: "POST " + at + "/housekeeping", As: alice, Status: 201, Want: `null`},
			{Do: "POST " + at + "/housekeeping?task=prune", As: alice, Status: 201},
			{Do: "POST " + at + "/housekeeping?task=other", As: alice, Status: 400, Want: `{"error":"task does not have a valid value"}`},
			{Do: "GET " + at + "/audit_events", As: alice, Status: 200, Want: `[{"details":{"custom_message":"Housekeeping was asked for"}},{},{}]`},
		})
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Check(t, apptest.Call{Do: "GET " + at + "/repository/tree", As: alice, Status: 200, Want: `[{"name":"README.md"}]`})
	})
}
