package web_test

import (
	"fmt"
	"net/url"
	"testing"

	"svc/internal/app/apptest"
)

// TestLatestArtifacts follows links to the artifacts of a job by its name.
func TestLatestArtifacts(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		st := newCIProject(t, s, "build: {script: [x], artifacts: {paths: [a]}}")
		finish := func() string {
			t.Helper()
			r := st.take()
			st.upload(r, "artifact_type=archive&artifact_format=zip", zipped(t, "a/b c.txt", "text"))
			st.end(r, "success")
			return fmt.Sprintf("/ada/p/-/jobs/%d/artifacts", r.ID)
		}
		st.pipeline("main")
		main := finish()
		st.api("POST /projects/%d/repository/branches", 201, url.Values{"branch": {"feat/raw/x"}, "ref": {"main"}})
		st.idle()
		feature := finish()
		st.pipeline("main") // has not ended
		to := func(path, want string) apptest.Call {
			return apptest.Call{Do: "GET //ada/p/-/jobs/artifacts/" + path, Status: 302, WantHeader: map[string]string{"Location": want}}
		}
		missing := func(path string) apptest.Call {
			return apptest.Call{Do: "GET //ada/p/-/jobs/artifacts/" + path, Status: 404}
		}
		s.Table(t, []apptest.Call{
			to("main/download?job=build", main+"/download"),
			to("main/raw/a/b%20c.txt?job=build", main+"/raw/a/b%20c.txt"),
			to("main/file/a/b%20c.txt?job=build", main+"/file/a/b%20c.txt"),
			to("main/browse?job=build", main+"/browse"),
			to("main/browse/a?job=build", main+"/browse/a"),
			to("feat/raw/x/raw/a/b%20c.txt?job=build", feature+"/raw/a/b%20c.txt"),
			to("feat/raw/x/download?job=build", feature+"/download"),
			missing("main/download?job=none"),
			missing("main/download"),
			missing("none/download?job=build"),
			missing("main/download/x?job=build"),
			missing("main/raw?job=build"),
			missing("main?job=build"),
			{Do: "GET /" + main + "/raw/a/b%20c.txt", Status: 200},
		})
		st.api("PUT /projects/%d", 200, url.Values{"visibility": {"private"}})
		s.Check(t, apptest.Call{Name: "private", Do: "GET //ada/p/-/jobs/artifacts/main/download?job=build", Status: 404})
	})
}
