package app_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"svc/internal/actor"
	"svc/internal/app"
	"svc/internal/app/apptest"
	"svc/internal/db"
	"svc/internal/errortrack"
	"svc/internal/git/gittest"
	"svc/internal/project"
)

// sealings are all places in the program that encrypt a value, by package and place,
// with the columns that store it. Values without a column are temporary; a rotation
// keeps the old key, which decrypts them.
var sealings = map[string][]string{
	"alert tokenPlace(i.ID)":         {"alert_integrations.token"},
	"ci pipelinePlace(p.ID)":         {"pipelines.variables"},
	"ci jobPlace(jobID)":             {"jobs.variables"},
	"runners r.sealedAt()":           {"runner_registration_tokens.sealed"},
	"schedule sealPlace(sch.ID)":     {"pipeline_schedules.variables"},
	"trigger sealPlace(t.ID)":        {"pipeline_triggers.token"},
	"variable instancePlace(v.ID)":   {"instance_variables.value"},
	"variable sealPlace(v.ID)":       {"ci_variables.value"},
	"variable place":                 nil, // the columns of pipelines, jobs and schedules are listed separately
	"errortrack sealedAt(p.ID)":      {"error_keys.sealed"},
	"featureflag sealedAt(in.ID)":    {"feature_flag_clients.sealed"},
	"hook secretPlace(h.ID)":         {"hooks.secrets"},
	"mirror sealedPlace(projectID)":  {"project_imports.credentials"},
	"mirror m.place()":               {"mirrors.secrets"},
	"transfer tokenPlace(b.ID)":      {"bulk_imports.token"},
	"transfer fileSourcePlace(i.ID)": {"project_file_imports.source"},
	"transfer uploadPlace(e.ID)":     {"project_exports.upload"},
	"transfer sourcePlace(by.ID)":    nil, // a form that asks what to import
	"securefile f.blob":              {"secure_files.sealed_key"},
	"terraform v.blob":               {"terraform_state_versions.sealed_key"},
	`errortrack "error_settings:" + strconv.FormatInt(was.ProjectID, 10)`: {"error_settings.token"},
	"mail place":                             nil, // an email in the queue
	"pages d.place()":                        {"pages_domains.private_key"},
	"pages sealedAt(key)":                    {"pages_acme.value"},
	"signing place(id)":                      {"signing_keys.sealed"},
	"sites sessionPlace(host)":               nil, // cookies and URLs of visitors of Pages sites
	"sites sessionPlace(hostName(r.Host))":   nil,
	"sites verifierPlace(host)":              nil,
	"sites codePlace(s.Origin, s.Challenge)": nil,
	"sites place":                            nil,
	"signin sealPlace(r.Provider)":           nil, // the cookie during a sign-in with an identity provider
	"user halfwayPlace":                      nil, // the cookie between password and second factor
	"user otpPlace(u.ID)":                    {"users.otp_secret"},
}

// TestSealings checks that sealings lists all places that encrypt a value, and that
// RotateKey handles all columns in it.
func TestSealings(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	err := fs.WalkDir(os.DirFS(".."), ".", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "secret/") {
			return err
		}
		return findSealings(path.Join("..", file), found)
	})
	if err != nil {
		t.Fatal(err)
	}
	var stored []string
	for place, columns := range sealings {
		if !found[place] {
			t.Errorf("nothing is sealed by %s any more", place)
		}
		stored = append(stored, columns...)
	}
	for place := range found {
		if _, known := sealings[place]; !known {
			t.Errorf("%s encrypts a value: add it to sealings with its columns, and the columns to App.sealed", place)
		}
	}
	rotated := app.SealedColumns()
	slices.Sort(stored)
	slices.Sort(rotated)
	if !slices.Equal(stored, rotated) {
		t.Errorf("columns in sealings: %v, rotated: %v", stored, rotated)
	}
}

// findSealings adds the places in a file that encrypt a value: the second argument
// of Seal and SealStream of a keyring.
func findSealings(file string, found map[string]bool) error {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 {
			return true
		}
		if f, ok := call.Fun.(*ast.SelectorExpr); ok && (f.Sel.Name == "Seal" || f.Sel.Name == "SealStream") {
			var text bytes.Buffer
			err = printer.Fprint(&text, set, call.Args[1])
			found[tree.Name.Name+" "+text.String()] = true
		}
		return true
	})
	return err
}

// TestRotateKey stores a value in each encrypted column, rotates the key, and
// searches all columns of all tables for values that are encrypted with the old key.
func TestRotateKey(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		fillSealed(t, s)
		for _, column := range app.SealedColumns() {
			table, name, _ := strings.Cut(column, ".")
			if n := count(t, s, `SELECT count(*) FROM `+table+` WHERE `+name+` <> ''`); n == 0 {
				t.Errorf("%s has no encrypted value", column)
			}
		}
		ids := s.Keys.IDs()
		old := ids[len(ids)-1]
		// The search must find values before the rotation, otherwise it proves
		// nothing.
		if left := sealedUnder(t, s, old); len(left) < len(app.SealedColumns()) {
			t.Fatalf("only %v are sealed", left)
		}
		if _, err := s.RotateKey(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left := sealedUnder(t, s, old); len(left) > 0 {
			t.Errorf("%v are under the old key still", left)
		}
		s.Table(t, []apptest.Call{
			{Name: "a variable", Do: "GET /admin/ci/variables/V", As: apptest.RootToken, Status: 200, Want: `{"value":"kept"}`},
			{Name: "the token of an integration", Do: "GET /projects/1/alert_management/http_integrations", As: apptest.RootToken, Status: 200, Want: `[{"token":"<any>"}]`},
			{Name: "a client key", Do: "GET /projects/1/error_tracking/client_keys", As: apptest.RootToken, Status: 200, Want: `[{"public_key":"<any>"}]`},
		})
	})
}

// fillSealed stores a value in each encrypted column.
func fillSealed(t *testing.T, s *apptest.Server) {
	t.Helper()
	const as = apptest.RootToken
	var made struct{ ID int64 }
	s.Check(t, apptest.Call{Do: "POST /projects", As: as, JSON: `{"path":"p"}`, Status: 201}).JSON(t, &made)
	if made.ID != 1 {
		t.Fatalf("the first project is %d", made.ID)
	}
	s.Repository(t, made.ID, gittest.Commit{Seconds: 1_600_000_000, Changes: []gittest.Change{{Path: ".gitlab-ci.yml", Content: "a: {script: [x]}"}}})
	s.Table(t, []apptest.Call{
		{Do: "POST /admin/ci/variables", As: as, JSON: `{"key":"V","value":"kept"}`, Status: 201},
		{Do: "POST /projects/1/variables", As: as, JSON: `{"key":"V","value":"kept"}`, Status: 201},
		{Do: "POST /projects/1/triggers", As: as, JSON: `{"description":"t"}`, Status: 201},
		{Do: "POST /projects/1/pipeline", As: as, JSON: `{"ref":"main","variables":[{"key":"A","value":"b"}]}`, Status: 201},
		{Do: "POST /projects/1/pipeline_schedules", As: as, JSON: `{"description":"s","ref":"main","cron":"0 1 * * *"}`, Status: 201},
		{Do: "POST /projects/1/pipeline_schedules/1/variables", As: as, JSON: `{"key":"A","value":"b"}`, Status: 201},
		{Do: "POST /runners/reset_registration_token", As: as, Status: 201},
		{Do: "POST /projects/1/alert_management/http_integrations", As: as, JSON: `{"name":"w"}`, Status: 201},
		{Do: "POST /projects/1/remote_mirrors", As: as, JSON: `{"url":"https://me:secret@git.example.org/a.git"}`, Status: 201},
		{Do: "POST /projects/1/terraform/state/s", As: as, JSON: `{"version":4,"serial":1}`, Status: 200},
		{Do: "POST /projects/1/hooks", As: as, JSON: `{"url":"https://hook.example","token":"kept"}`, Status: 201},
		{Do: "PUT /projects/1/error_tracking/settings", As: as, JSON: `{"active":true,"integrated":true}`, Status: 200},
	})
	secret := "kept"
	_, err := s.Errors.Configure(t.Context(), actor.System(), project.RefTo(1), errortrack.SetupChange{
		External: &errortrack.External{ProjectName: "p", APIURL: "https://errors.example/api"}, ExternalToken: &secret,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Signing.Sign(t.Context(), map[string]any{"sub": "x"}); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		`UPDATE users SET otp_secret = ? WHERE id = 1`, `UPDATE jobs SET variables = ?`,
		`INSERT INTO pages_domains (project_id, domain, private_key, verification_code, created_at, updated_at) VALUES (1, 'a.example', ?, '', 0, 0)`,
		`INSERT INTO pages_acme (name, value, size, updated_at) VALUES ('a', ?, 0, 0)`,
		`INSERT INTO feature_flag_clients (project_id, digest, sealed, created_at) VALUES (1, 'd', ?, 0)`,
		`INSERT INTO project_imports (project_id, user_id, run, active, credentials, created_at) VALUES (1, 1, 'r', TRUE, ?, 0)`,
		`INSERT INTO bulk_imports (user_id, source_url, token, state, created_at, updated_at) VALUES (1, 'https://source.example', ?, 'started', 0, 0)`,
		`INSERT INTO project_file_imports (user_id, name, path, parent_id, state, file, source, created_at) VALUES (1, 'a', 'a', 1, 'queued', 'a', ?, 0)`,
		`INSERT INTO project_exports (project_id, user_id, state, upload, created_at) VALUES (1, 1, 'queued', ?, 0)`,
		`INSERT INTO secure_files (project_id, name, size, sha256, blob, sealed_key, created_at) VALUES (1, 'f', 0, '', 'secure', ?, 0)`,
	} {
		if _, err := s.DB.ExecContext(t.Context(), statement, s.Keys.Seal([]byte("kept"), "anywhere")); err != nil {
			t.Fatal(err)
		}
	}
}

// sealedUnder returns the columns with values that are encrypted with a key, of all
// columns that can contain text.
func sealedUnder(t *testing.T, s *apptest.Server, key string) (found []string) {
	t.Helper()
	all := `SELECT m.name || '.' || c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND upper(c.type) LIKE '%TEXT%'`
	if s.DB.Postgres() {
		all = `SELECT table_name || '.' || column_name FROM information_schema.columns WHERE table_schema = current_schema() AND data_type = 'text'`
	}
	columns, err := db.All(t.Context(), s.DB, db.Value[string], all)
	if err != nil {
		t.Fatal(err)
	}
	if len(columns) < 200 {
		t.Fatalf("the schema has only %d columns", len(columns))
	}
	for _, column := range columns {
		table, name, _ := strings.Cut(column, ".")
		if count(t, s, fmt.Sprintf(`SELECT count(*) FROM "%s" WHERE "%s" LIKE '%%.%s.%%'`, table, name, key)) > 0 {
			found = append(found, column)
		}
	}
	return found
}

func count(t *testing.T, s *apptest.Server, query string) (n int) {
	t.Helper()
	if err := s.DB.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}
