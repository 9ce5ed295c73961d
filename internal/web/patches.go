package web

import (
	"io"
	"net/http"

	"github.com/go-chi/chi/v5"

	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/merge"
	"svc/internal/project"
)

// patchPages are the commits and changes as text, for git am and git apply.
func (w *Web) patchPages() {
	w.projectPage("GET commit/{id}.patch", anyone, w.commitPatch)
	w.projectPage("GET commit/{id}.diff", anyone, w.commitDiff)
	w.projectPage("GET merge_requests/{id}.patch", anyone, w.mergePatch)
	w.projectPage("GET merge_requests/{id}.diff", anyone, w.mergeDiff)
}

// commitAndParent returns a commit and its first parent; empty for the first commit.
func (w *Web) commitAndParent(v *visit, ref project.Ref) (parent, id git.OID, err error) {
	_, c, err := w.Repos.Commit(v, v.actor, ref, chi.URLParam(v.r, "id"), false)
	if err != nil {
		return "", "", err
	}
	if len(c.ParentIDs) > 0 {
		parent = c.ParentIDs[0]
	}
	return parent, c.ID, nil
}

func (w *Web) commitPatch(v *visit, ref project.Ref) error {
	parent, id, err := w.commitAndParent(v, ref)
	if err != nil {
		return err
	}
	return v.sendText(func(out io.Writer) error { return w.Repos.WritePatch(v, v.actor, ref, parent, id, out) })
}

func (w *Web) commitDiff(v *visit, ref project.Ref) error {
	parent, id, err := w.commitAndParent(v, ref)
	if err != nil {
		return err
	}
	d, err := w.Repos.DiffCommits(v, v.actor, ref, parent, id, git.RawDiff())
	if err != nil {
		return err
	}
	return v.sendText(d.WriteRaw)
}

func (w *Web) mergePatch(v *visit, ref project.Ref) error {
	c, err := w.mergeContents(v, ref, merge.Part{})
	if err != nil {
		return err
	}
	base, head := git.OID(c.Version.Base), git.OID(c.Version.Head)
	return v.sendText(func(out io.Writer) error { return w.Repos.WritePatch(v, v.actor, ref, base, head, out) })
}

func (w *Web) mergeDiff(v *visit, ref project.Ref) error {
	c, err := w.mergeContents(v, ref, merge.Part{Diff: true, Options: git.RawDiff()})
	if err != nil {
		return err
	}
	return v.sendText(c.Diff.WriteRaw)
}

// mergeContents returns the contents of the newest version of a merge request.
// NotFound if there is none.
func (w *Web) mergeContents(v *visit, ref project.Ref, want merge.Part) (*merge.Contents, error) {
	iid, err := v.number("id")
	if err != nil {
		return nil, err
	}
	c, err := w.Merges.Contents(v, v.actor, ref, iid, want)
	if err == nil && (c.Version == nil || c.Version.Base == "") {
		err = errs.NotFound("")
	}
	return c, err
}

// sendText sends text from users, which browsers never treat as a page of this site.
func (v *visit) sendText(write func(io.Writer) error) error {
	foreign(v.w.Header(), "text/plain; charset=utf-8", "private, no-cache")
	out := &begun{ResponseWriter: v.w}
	if err := write(out); err != nil {
		if !out.yes {
			return err
		}
		panic(http.ErrAbortHandler) // aborts the response, so that the client notices that the text is incomplete
	}
	return nil
}
