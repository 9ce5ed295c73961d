package web_test

import (
	"fmt"
	"regexp"
	"testing"

	"svc/internal/app/apptest"
)

// TestAccountPages uses the pages of service accounts, of protected branches of
// groups, and the templates of new projects and files.
func TestAccountPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		owner, root := newBrowser(t, s).signIn("ada", password), newBrowser(t, s).signIn("root", apptest.RootPassword)
		dev, _ := s.User(t, "dev")
		developer := newBrowser(t, s).signIn("dev", password)
		var group struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /groups", As: ada, JSON: `{"name":"Team","path":"team"}`, Status: 201}).JSON(t, &group)
		s.Check(t, apptest.Call{Do: "POST /groups/team/members", As: ada, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":30}`, dev), Status: 201})

		const inGroup, inAdmin = "/groups/team/-/settings/service_accounts", "/admin/service_accounts"
		owner.get(inGroup).want(200, "No service accounts", "Only administrators can create service accounts").not("Add service account")
		developer.get(inGroup).want(403)
		owner.get(inAdmin).want(404)
		for _, c := range []struct {
			at string
			as *browser
		}{{inGroup, owner}, {inAdmin, root}} {
			s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, JSON: `{"allow_top_level_group_owners_to_create_service_accounts":true}`, Status: 200})
			c.as.submit(c.at, c.at, "name", "Robot", "username", "..").want(422, "can contain only letters")
			made := c.as.submit(c.at, c.at, "name", "Robot")
			one := regexp.MustCompile(`^` + c.at + `/\d+$`).FindString(made.header.Get("Location"))
			if one == "" {
				t.Fatalf("%s: leads to %q", c.at, made.header.Get("Location"))
			}
			c.as.get(one).want(200, "Robot", "No tokens", "Delete service account")
			c.as.submit(one, one+"/tokens", "token_name", "t", "expires_at", "").want(422, "Scopes can&#39;t be blank")
			token := c.as.submit(one, one+"/tokens", "token_name", "Deploy", "scopes", "api").want(200, "Deploy was created", "Copy it now")
			rotate := regexp.MustCompile(one + `/tokens/\d+/rotate`).FindString(token.body)
			rotated := c.as.submit(one, rotate).want(200, "Copy it now")
			revoke := regexp.MustCompile(one + `/tokens/\d+/revoke`).FindString(rotated.body)
			c.as.submit(one, revoke).leads(one)
			c.as.submit(one, one, "name", "Other", "username", "other").leads(one)
			c.as.get(c.at).want(200, "Other", "@other")
			c.as.submit(one, one+"/delete").leads(c.at)
			c.as.get(c.at).want(200).not("@other")
			s.Settled(t) // a background job frees the name
		}

		const rules = "/groups/team/-/settings/protected"
		developer.get(rules).want(403)
		owner.get(rules).want(200, "No protected branches").not("Protected tags")
		owner.submit(rules, rules, "kind", "branch", "branch", "stable/*", "push_level", "40", "merge_level", "40").leads(rules)
		owner.submit(rules, rules, "kind", "branch", "branch", "stable/*", "push_level", "40", "merge_level", "40").want(422, "already exists")
		owner.submit(rules, rules+"/force", "name", "stable/*", "allow_force_push", "1").leads(rules)
		owner.get(rules).want(200, "stable/*", "Force push allowed")

		owner.get("/projects/new").want(200, ".gitignore template", "MIT License")
		owner.submit("/projects/new", "/projects", "name", "App", "namespace_id", fmt.Sprint(group.ID), "visibility", "private", "license", "none").want(422, "is not included in the list")
		owner.submit("/projects/new", "/projects", "name", "App", "namespace_id", fmt.Sprint(group.ID), "visibility", "private",
			"readme", "1", "gitignore", "Go", "license", "mit").leads("/team/app")
		owner.get("/team/app").want(200, "README.md", ".gitignore", "LICENSE")
		s.Check(t, apptest.Call{Do: "GET /projects/team%2Fapp/repository/files/LICENSE/raw?ref=main", As: ada, Status: 200, Not: []string{"[fullname]", "[year]"}})
		owner.get("/team/app/-/settings/protected").want(200, "stable/*", "Inherited from group").not("Unprotect stable")
		owner.get("/team/app/-/new/main").want(200, "Apply template", "Dockerfile")
		owner.get("/team/app/-/new/main?template=dockerfiles%2FPython").want(200, `value="Dockerfile"`, "FROM python")
		owner.get("/team/app/-/new/main?template=gitignores%2F..%2Flicenses%2Fmit").want(404)
		owner.submit(rules, rules+"/delete", "kind", "branch", "name", "stable/*").leads(rules)

		const messages = "/admin/broadcast_messages"
		root.submit(messages, messages, "message", "For developers", "broadcast_type", "banner", "theme", "red", "target_access_levels", "30",
			"starts_at", "2001-01-01T00:00", "ends_at", "2100-01-01T00:00").leads(messages)
		developer.get("/team").want(200, "For developers")
		developer.get("/dashboard/projects").want(200).not("For developers")
		owner.get("/team").want(200).not("For developers")
	})
}
