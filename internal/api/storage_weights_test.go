package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
)

// TestStorageWeights checks that new repositories are stored according to the
// weights of the storages.
func TestStorageWeights(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		weigh := func(name, weights string, status int, want string) apptest.Call {
			return apptest.Call{Name: name, Do: "PUT /application/settings", As: root, JSON: `{"repository_storages_weighted":` + weights + `}`, Status: status, Want: want}
		}
		s.Table(t, []apptest.Call{
			{Name: "default", Do: "GET /application/settings", As: root, Status: 200, Want: `{"repository_storages_weighted":{"default":100}}`},
			weigh("unknown", `{"default":50,"third":50}`, 400, `{"message":{"repository_storages_weighted":["the storage \"third\" does not exist"]}}`),
			weigh("too much", `{"default":101}`, 400, ""),
			weigh("negative", `{"default":100,"second":-1}`, 400, ""),
			weigh("not a number", `{"default":"much"}`, 400, ""),
			weigh("none", `{"default":0,"second":0}`, 400, ""),
			weigh("empty", `{}`, 400, ""),
			weigh("not a map", `"second"`, 400, ""),
			{Name: "unchanged", Do: "GET /application/settings", As: root, Status: 200, Want: `{"repository_storages_weighted":{"default":100}}`},
			{Name: "as a form", Do: "PUT /application/settings?repository_storages_weighted[second]=1&repository_storages_weighted[default]=0", As: root, Status: 200,
				Want: `{"repository_storages_weighted":{"default":0,"second":1}}`},
			weigh("replaced", `{"second":100}`, 200, `{"repository_storages_weighted":{"second":100}}`),
			{Do: "POST /projects", As: ada, JSON: `{"name":"p","initialize_with_readme":true,"visibility":"public"}`, Status: 201},
			{Do: "GET /projects/ada%2Fp", As: root, Status: 200, Want: `{"repository_storage":"second"}`},
			{Do: "GET /projects/ada%2Fp/repository/files/README.md/raw", As: ada, Status: 200},
			{Do: "POST /projects/ada%2Fp/wikis", As: ada, JSON: `{"title":"home","content":"x"}`, Status: 201},
			{Do: "POST /snippets", As: ada, JSON: `{"title":"s","visibility":"private","files":[{"file_path":"a","content":"kept"}]}`, Status: 201},
			{Do: "GET /snippets/1/raw", As: ada, Status: 200, Text: "kept"},
			{Name: "of an administrator", Do: "POST /projects", As: root, JSON: `{"name":"q","repository_storage":"default"}`, Status: 201, Want: `{"repository_storage":"default"}`},

			weigh("back", `{"default":100}`, 200, ""),
			{Do: "POST /projects", As: root, JSON: `{"name":"r"}`, Status: 201, Want: `{"repository_storage":"default"}`},
			{Name: "a fork is where its source is", Do: "POST /projects/ada%2Fp/fork", As: root, Status: 201, Want: `{"repository_storage":"second"}`},
		})

		s.Check(t, weigh("half", `{"default":50,"second":50}`, 200, ""))
		seen := map[string]bool{}
		for i := 0; len(seen) < 2 && i < 100; i++ { // the same storage 100 times is practically impossible
			var made struct {
				Storage string `json:"repository_storage"`
			}
			s.Check(t, apptest.Call{Do: "POST /projects", As: root, JSON: fmt.Sprintf(`{"name":"n%d"}`, i), Status: 201}).JSON(t, &made)
			seen[made.Storage] = true
		}
		if len(seen) != 2 {
			t.Errorf("all projects are on %v", seen)
		}
	}, apptest.Storages)
}
