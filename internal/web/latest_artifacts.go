package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"svc/internal/errs"
	"svc/internal/project"
)

// maxRefGuesses is the maximum number of refs that latestArtifacts looks up.
const maxRefGuesses = 5

// latestArtifacts redirects from the artifacts of a job by its name, in the newest
// successful pipeline of a ref, to those of the job: main/raw/dir/a.txt?job=build.
// Links in texts and install scripts use it. Refs can contain slashes, and the words
// that follow them.
func (w *Web) latestArtifacts(v *visit, ref project.Ref) error {
	p, err := w.Projects.Require(v, v.actor, ref, project.NoAccess)
	if err != nil {
		return err
	}
	parts, name, guesses := strings.Split(strings.Trim(v.rest(), "/"), "/"), v.param("job"), 0
	for i := 1; i < len(parts) && guesses < maxRefGuesses; i++ {
		path := parts[i+1:]
		switch {
		case parts[i] == "download" && len(path) == 0, parts[i] == "browse", slices.Contains([]string{"raw", "file"}, parts[i]) && len(path) > 0:
		default:
			continue
		}
		guesses++
		j, err := w.CI.ArchiveJob(v, v.actor, ref, strings.Join(parts[:i], "/"), name)
		if errs.Is(err, errs.KindNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		v.w.Header().Set("Cache-Control", "no-store")
		http.Redirect(v.w, v.r, fmt.Sprintf("/%s/-/jobs/%d/artifacts/", p.FullPath, j.ID)+parts[i]+pathTo(path...), http.StatusFound)
		return nil
	}
	return errs.NotFound("")
}
