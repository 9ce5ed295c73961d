package repo

import (
	"strings"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/project"
)

// RefVisible reports whether an actor who sees the pipelines of a project sees
// those of a ref, and their jobs and deployments. Those of merge requests would
// show commits that are hidden in the repository to actors who do not see the
// merge requests.
func RefVisible(by actor.Actor, p *project.Project, ref string) bool {
	return !strings.HasPrefix(ref, MergeRefs) || p.MayReadMergeRefs(by)
}

// WhereRefVisible leaves out the rows whose ref RefVisible hides. column is the
// column of the ref.
func WhereRefVisible(w *db.Where, by actor.Actor, p *project.Project, column string) {
	if !p.MayReadMergeRefs(by) {
		w.And(NotMergeRef(column))
	}
}

// NotMergeRef is the condition that a ref is not that of a merge request.
func NotMergeRef(column string) string {
	return "substr(" + column + ", 1, 20) <> '" + MergeRefs + "'"
}
