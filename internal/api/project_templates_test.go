package api_test

import (
	"testing"

	"svc/internal/app/apptest"
)

func TestProjectTemplates(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		const in = "/projects/alice%2Fp"
		file := func(path, text string) apptest.Call {
			return apptest.Call{Do: "POST " + in + "/repository/files/" + path, As: alice, Status: 201, JSON: `{"branch":"main","content":"` + text + `","commit_message":"add"}`}
		}
		s.Table(t, []apptest.Call{
			{Do: "POST /projects", As: alice, JSON: `{"name":"p","visibility":"public"}`, Status: 201},
			{Name: "empty repository", Do: "GET " + in + "/templates/issues", Status: 200, Want: `[]`},
			file(".gitlab%2Fissue_templates%2FBug.md", `## Steps`),
			file(".gitlab%2Fissue_templates%2FDefault.md", `What?`),
			file(".gitlab%2Fissue_templates%2Fnotes.txt", `no`),
			file(".gitlab%2Fmerge_request_templates%2FChange.md", `## Why`),
			{Name: "issues", Do: "GET " + in + "/templates/issues", Status: 200, Want: `[{"key":"Bug","name":"Bug"},{"key":"Default","name":"Default"}]`},
			{Name: "merge requests", Do: "GET " + in + "/templates/merge_requests", Status: 200, Want: `[{"key":"Change","name":"Change"}]`},
			{Name: "one", Do: "GET " + in + "/templates/issues/Bug", Status: 200, Want: `{"name":"Bug","content":"## Steps"}`},
			{Name: "missing", Do: "GET " + in + "/templates/issues/None", Status: 404},
			{Name: "outside", Do: "GET " + in + "/templates/issues/..%2F..%2FREADME", Status: 404},
			{Name: "unknown type", Do: "GET " + in + "/templates/unknown", Status: 400},
		})
	})
}
