package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

func TestCITemplates(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "include: {template: House/Rules.gitlab-ci.yml}\na: {script: [x]}\n")
		at := w.bench.at("/ci/lint")
		s.Check(t, apptest.Call{Do: "GET " + at, As: w.owner, Status: 200,
			Want: `{"valid":false,"errors":["Template file ` + "`House/Rules.gitlab-ci.yml`" + ` does not exist!"]}`})
		// Templates in the data directory take effect at once and override the
		// built-in ones.
		dir := filepath.Join(s.Config.DataDir, "ci_templates")
		for name, content := range map[string]string{
			"House/Rules.gitlab-ci.yml": "b: {script: [of the house]}\n", "Go.gitlab-ci.yml": "go: {script: [ours]}\n", "notes.txt": "no template",
		} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var keys []struct{ Key, Name string }
		s.Check(t, apptest.Call{Do: "GET /templates/gitlab_ci_ymls?per_page=100", Status: 200}).JSON(t, &keys)
		var own []string
		for _, k := range keys {
			own = append(own, k.Key)
			if k.Key != "House/Rules" && k.Key != "Go" {
				s.Check(t, apptest.Call{Name: k.Key, Do: "POST " + at, As: w.owner, Status: 200, Want: `{"valid":true,"warnings":[]}`,
					JSON: fmt.Sprintf(`{"content":"include: [{template: %s.gitlab-ci.yml}]\nlast: {stage: .post, script: [x]}"}`, k.Key)})
			}
		}
		if len(own) < 8 || own[0] != "Bash" {
			t.Errorf("the templates are %v", own)
		}
		s.Table(t, []apptest.Call{
			{Do: "GET " + at, As: w.owner, Status: 200, Want: `{"valid":true,"includes":[{"type":"template","location":"House/Rules.gitlab-ci.yml","blob":null}]}`},
			{Do: "GET /templates/gitlab_ci_ymls/House%2FRules", Status: 200, Want: `{"name":"House/Rules","content":"b: {script: [of the house]}\n"}`},
			{Do: "GET /templates/gitlab_ci_ymls/Go", Status: 200, Want: `{"name":"Go","content":"go: {script: [ours]}\n"}`},
			{Do: "GET /templates/gitlab_ci_ymls?per_page=1&page=2", Status: 200, Want: `[{"key":"C","name":"C"}]`, WantHeader: map[string]string{"X-Next-Page": "3"}},
			{Do: "GET /templates/gitlab_ci_ymls/None", Status: 404, Want: `{"message":"404 gitlab_ci_yml Not Found"}`},
			{Do: "GET /templates/gitlab_ci_ymls/..%2Fsecret", Status: 404},
			{Do: "GET /templates/gitlab_ci_ymls/%2Fetc%2Fpasswd", Status: 404},
		})
	})
}

func TestRemoteIncludes(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ci.yml":
			_, _ = w.Write([]byte("far: {script: [x]}\n"))
		case "/moved.yml":
			http.Redirect(w, r, "/ci.yml", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(site.Close)
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "a: {script: [x]}\n")
		lint := func(name, file, want string) apptest.Call {
			return apptest.Call{Name: name, Do: w.at("POST", "/ci/lint"), As: w.owner, Status: 200, Want: want,
				JSON: fmt.Sprintf(`{"content":"include: ['%s%s']\na: {script: [x]}"}`, site.URL, file)}
		}
		refused := func(file, why string) string {
			return fmt.Sprintf(`{"valid":false,"errors":["Remote file %s"]}`, "`"+site.URL+file+"` "+why)
		}
		set := func(body string) apptest.Call {
			return apptest.Call{Do: "PUT /application/settings", As: root, JSON: body, Status: 200, Want: body}
		}
		s.Table(t, []apptest.Call{
			lint("off", "/ci.yml", refused("/ci.yml", "is not allowed: this server includes no files from other sites")),
			set(`{"ci_remote_includes_enabled":true}`),
			lint("a local address", "/ci.yml", refused("/ci.yml", "could not be fetched: the address belongs to a local network")),
			set(`{"allow_local_requests_from_web_hooks_and_services":true}`),
			lint("on", "/ci.yml", `{"valid":true,"includes":[{"type":"remote"}]}`),
			lint("moved", "/moved.yml", `{"valid":true}`),
			lint("missing", "/none.yml", refused("/none.yml", "could not be fetched: the server responded with HTTP 404")),
			{Name: "a project without a file of its own", Do: fmt.Sprintf("PUT /projects/%d", w.project), As: w.owner, JSON: fmt.Sprintf(`{"ci_config_path":%q}`, site.URL+"/ci.yml"), Status: 200},
		})
		p := w.push("main", "go", map[string]string{"x": "y"})
		w.see(p, "pending | far:pending")
	})
}

// TestRemoteIncludeHasNoContext checks that the includes of a remote file see no variables,
// and only public projects.
func TestRemoteIncludeHasNoContext(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		asked := make(chan string, 100)
		bodies := map[string]string{}
		site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked <- r.URL.Path
			body, ok := bodies[r.URL.Path]
			if !ok {
				body = "far: {script: [x]}\n"
			}
			_, _ = w.Write([]byte(body))
		}))
		t.Cleanup(site.Close)
		bodies["/leak.yml"] = "include: ['" + site.URL + "/$SECRET.yml']\n"
		bodies["/rules.yml"] = "include: [{remote: '" + site.URL + "/yes.yml', rules: [{if: '$SECRET == \"s3cret\"'}]}]\nfar: {script: [x]}\n"
		bodies["/inputs.yml"] = "spec: {inputs: {x: {default: $SECRET}}}\n---\ninclude: ['" + site.URL + "/$[[ inputs.x | expand_vars ]].yml']\nfar: {script: ['$[[ inputs.x | expand_vars ]]']}\n"
		bodies["/private.yml"] = "include: [{project: alice/private, file: ci.yml}]\n"
		bodies["/public.yml"] = "include: [{project: alice/public, file: ci.yml}]\n"
		bodies["/through.yml"] = "include: [{project: alice/public, file: through.yml}]\n"
		w := newNamedJobs(t, s, "a: {script: [x]}\n")
		w.variable("SECRET", "s3cret")
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: root, JSON: `{"ci_remote_includes_enabled":true,"allow_local_requests_from_web_hooks_and_services":true}`, Status: 200})
		private := w.newProject("private", "x: {script: [x]}\n")
		w.pushTo(private, "main", "m", map[string]string{"ci.yml": "private: {script: [x]}\n"})
		public := w.newProject("public", "x: {script: [x]}\n")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d", public), As: w.owner, JSON: `{"visibility":"public"}`, Status: 200})
		w.pushTo(public, "main", "m", map[string]string{"ci.yml": "public: {script: [x]}\n", "through.yml": "include: [{project: alice/private, file: ci.yml}]\n"})
		lint := func(name, file, want string) apptest.Call {
			return apptest.Call{Name: name, Do: w.at("POST", "/ci/lint"), As: w.owner, Status: 200, Want: want,
				JSON: fmt.Sprintf(`{"content":"include: ['%s%s']\na: {script: [x]}"}`, site.URL, file)}
		}
		denied := `{"valid":false,"errors":["Project ` + "`alice/private`" + ` not found or access denied! Make sure any includes in the pipeline configuration are correctly defined."]}`
		s.Table(t, []apptest.Call{
			lint("a variable", "/leak.yml", `{"valid":true}`),
			lint("a variable in a rule", "/rules.yml", `{"valid":true,"includes":[{"location":"`+site.URL+`/rules.yml"}]}`),
			lint("a variable in an input", "/inputs.yml", `{"valid":true}`),
			lint("a private project", "/private.yml", denied),
			lint("a public project", "/public.yml", `{"valid":true}`),
			lint("a private project through a public one", "/through.yml", denied),
			{Name: "the user's own include", Do: w.at("POST", "/ci/lint"), As: w.owner, Status: 200, Want: `{"valid":true}`,
				JSON: `{"content":"include: [{project: alice/private, file: ci.yml}]\na: {script: [x]}"}`},
		})
		close(asked)
		literal := 0
		for path := range asked {
			if strings.Contains(path, "s3cret") || path == "/yes.yml" {
				t.Errorf("the site was asked for %s", path)
			}
			if path == "/$SECRET.yml" {
				literal++
			}
		}
		if literal != 2 {
			t.Errorf("the site was asked %d times for the unexpanded path, want 2", literal)
		}
	})
}

func TestConfigPathElsewhere(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "own: {script: [x]}\n")
		other := w.newProject("shared", "unused: {script: [x]}\n")
		w.pushTo(other, "main", "m", map[string]string{"ci/a.yml": "from-main: {script: [x]}\n"})
		w.pushTo(other, "next", "m", map[string]string{"ci/a.yml": "from-next: {script: [x]}\n"})
		for i, tt := range []struct{ path, want string }{
			{"ci/a.yml@alice/shared", "pending | from-main:pending"},
			{"ci/a.yml@alice/shared:next", "pending | from-next:pending"},
			{"", "pending | own:pending"},
		} {
			s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d", w.project), As: w.owner, JSON: fmt.Sprintf(`{"ci_config_path":%q}`, tt.path), Status: 200})
			w.see(w.push("main", "go", map[string]string{fmt.Sprintf("f%d", i): "y"}), tt.want)
		}
		// The error of an invalid include contains the file and the line.
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d", w.project), As: w.owner, JSON: `{"ci_config_path":"ci/b.yml@alice/shared"}`, Status: 200})
		w.pushTo(other, "main", "m", map[string]string{"ci/b.yml": "a:\n  script: [x]\n  stage: nowhere\n"})
		p := w.push("main", "go", map[string]string{"g": "y"})
		s.Check(t, apptest.Call{Do: w.at("GET", "/pipelines/%d", p), As: w.owner, Status: 200, Want: `{"status":"failed",` +
			`"yaml_errors":"alice/shared:ci/b.yml:3: a job: chosen stage nowhere does not exist; available stages are .pre, build, test, deploy, .post"}`})
	})
}
