package api_test

import (
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// TestTriggerPayload checks that the jobs of a triggered pipeline get the parameters
// of the request as a file, without the token and not expanded.
func TestTriggerPayload(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, `a: {script: [x]}`)
		at, start := w.bench.at(""), w.bench.at("/trigger/pipeline")
		var made struct{ Token string }
		s.Check(t, apptest.Call{Do: "POST " + w.bench.at("/triggers"), As: w.owner, JSON: `{"description":"hook"}`, Status: 201}).JSON(t, &made)
		// The payload is not a variable that the caller may choose.
		s.Check(t, apptest.Call{Do: "PUT " + at, As: w.owner, JSON: `{"ci_pipeline_variables_minimum_override_role":"no_one_allowed"}`, Status: 200})
		payload := func(c apptest.Call) string {
			t.Helper()
			c.Status = 201
			var p struct{ ID int64 }
			s.Check(t, c).JSON(t, &p)
			w.settled()
			given := s.Check(t, apptest.Call{Do: w.at("GET", "/pipelines/%d/variables", p.ID), As: w.owner, Status: 200})
			w.pick()
			got := w.held["a"].variable("TRIGGER_PAYLOAD")
			w.update(w.held["a"], 200, `{"state":"success"}`)
			if list := string(given.Body); got != "" && !strings.Contains(list, `"variable_type":"file"`) {
				t.Errorf("the variables are %s", list)
			}
			return got
		}
		for _, c := range []struct {
			name, want string
			call       apptest.Call
		}{
			{"webhook", `{"object_kind":"push","commits":[{"title":"$CI_JOB_NAME"}]}`,
				apptest.Call{Do: "POST " + w.bench.at("/ref/main/trigger/pipeline") + "?token=" + made.Token, JSON: `{"object_kind":"push","commits":[{"title":"$CI_JOB_NAME"}]}`}},
			{"token in the body", `{"ref":"main"}`, apptest.Call{Do: "POST " + start, JSON: `{"token":"` + made.Token + `","ref":"main"}`}},
			{"form", `{"ref":"main","deploy":{"to":"here"}}`, apptest.Call{Do: "POST " + start + "?token=" + made.Token + "&ref=main&deploy[to]=here"}},
			{"too large", "", apptest.Call{Do: "POST " + start, JSON: `{"token":"` + made.Token + `","ref":"main","x":"` + strings.Repeat("x", 128<<10) + `"}`}},
		} {
			if got := payload(c.call); got != c.want {
				t.Errorf("%s: the payload is %q, want %q", c.name, got, c.want)
			}
		}
	})
}
