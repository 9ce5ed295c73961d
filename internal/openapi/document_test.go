package openapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"svc/internal/bind"
)

var update = flag.Bool("update", false, "rewrite testdata")

type jobParams struct {
	Project string `param:"id" doc:"Project ID or full path."`
	Job     int64  `param:"job_id"`
	Force   bool   `param:"force" tier:"premium"`
	Hidden  string `param:"hidden" tier:"ultimate"`
}

type jobJSON struct {
	ID     int64  `json:"id"`
	Status string `json:"status" enum:"pending,running"`
}

type messageJSON struct {
	Message string `json:"message"`
}

// testEndpoints returns an endpoint for each kind of result.
func testEndpoints(t *testing.T) []Endpoint {
	t.Helper()
	layout, err := bind.NewLayout(reflect.TypeFor[jobParams](), "id", "job_id")
	if err != nil {
		t.Fatal(err)
	}
	const one = "/projects/{id}/jobs/{job_id}"
	job, api := []reflect.Type{reflect.TypeFor[jobJSON]()}, []string{"api"}
	list := []Endpoint{
		{Method: "GET", Path: "/projects/{id}/jobs", Summary: "List project jobs", Public: true, Scopes: api, Result: List, Types: job, Status: 200},
		{Method: "GET", Path: one, Summary: "Get a job", Scopes: api, Types: job, Status: 200, Errors: []int{404}},
		{Method: "POST", Path: one + "/cancel", Summary: "Cancel a job", Scopes: api, Types: job, Status: 201, Unchanged: true, Errors: []int{404}},
		{Method: "GET", Path: one + "/trace", Summary: "Get a job log", Result: Stream, Status: 200},
		{Method: "POST", Path: one + "/erase", Summary: "Erase a job", Tier: "premium", Result: Accepted, Status: 202,
			Responses: []Response{{Status: 409, Text: "The job is running.", Type: reflect.TypeFor[messageJSON]()}}},
		{Method: "DELETE", Path: one, Summary: "Delete a job", Result: Empty, Status: 204},
	}
	for i := range list {
		list[i].Tag, list[i].Params = "Jobs", layout
	}
	return list
}

func testDocument(t *testing.T) *Document {
	t.Helper()
	server := testServer()
	server.Tiers = []string{"free", "premium"}
	return New(server, []Error{{Status: http.StatusNotFound, Name: "NotFound", Text: "The job does not exist.", Types: []reflect.Type{reflect.TypeFor[messageJSON]()}}}, testEndpoints(t))
}

// TestNew compares a small document with testdata/document.json.
func TestNew(t *testing.T) {
	t.Parallel()
	const file = "testdata/document.json"
	var got bytes.Buffer
	if err := json.Indent(&got, testDocument(t).JSON(), "", "  "); err != nil {
		t.Fatal(err)
	}
	got.WriteByte('\n')
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s: run go test ./internal/openapi -update and read the change (-want +got):\n%s", file, diff)
	}
}

func TestNewPages(t *testing.T) {
	t.Parallel()
	pages := NewPages(testDocument(t))
	if len(pages.Groups) != 1 || pages.Groups[0].Slug != "jobs" || len(pages.Groups[0].Endpoints) != 6 {
		t.Fatalf("got %d groups", len(pages.Groups))
	}
	index, page := string(pages.Index()), string(pages.Page(pages.Groups[0]))
	for _, want := range []string{"svc API", "docs/jobs", "The job does not exist."} {
		if !strings.Contains(index, want) {
			t.Errorf("the index has no %q", want)
		}
	}
	for _, want := range []string{"Cancel a job", "<var>{job_id}</var>", "PRIVATE-TOKEN: $TOKEN", "Requires the premium tier or higher.", "list of Job", "No content"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if strings.Contains(page, "hidden</code>") {
		t.Error("the page has a parameter of a tier that is not served")
	}
}
