package repo

import (
	"strings"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/project"
)

// RefVisible reports whether an actor who can see the pipelines of a project
// can see those of a ref, with their jobs and deployments. Merge request refs
// are hidden from actors who cannot see merge requests: their pipelines would
// show commits that are hidden in the repository.
func RefVisible(by actor.Actor, p *project.Project, ref string) bool {
	return !strings.HasPrefix(ref, MergeRefs) || p.MayReadMergeRefs(by)
}

// WhereRefVisible adds the condition of RefVisible on the column of the ref.
func WhereRefVisible(w *db.Where, by actor.Actor, p *project.Project, column string) {
	if !p.MayReadMergeRefs(by) {
		w.And(NotMergeRef(column))
	}
}

// NotMergeRef returns the condition that a ref is not a merge request ref.
func NotMergeRef(column string) string {
	return "substr(" + column + ", 1, 20) <> '" + MergeRefs + "'"
}
