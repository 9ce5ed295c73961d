package web

import (
	"fmt"
	"strings"

	"svc/internal/db"
	"svc/internal/git"
	"svc/internal/merge"
	"svc/internal/project"
)

func (w *Web) mergeChangePages() {
	w.projectPage("POST merge_requests/{id}/diff_notes", signedIn, w.createDiffNote)
	w.projectPage("POST merge_requests/{id}/viewed", signedIn, w.setViewed)
}

// mergeChanges fills the tab with the changes of a merge request: of one of its
// versions, compared with the base or with an earlier version.
func (w *Web) mergeChanges(v *visit, p *mergePage) error {
	want := merge.Part{Diff: true, FromHead: v.param("start_sha"), Options: git.DiffOptions{IgnoreWhitespace: v.hideSpace()}}
	page, err := w.Merges.Versions(v, v.actor, p.Place.Ref, p.IID, db.Paging{Limit: 50})
	if err != nil {
		return err
	}
	p.Versions = page.Items
	for _, one := range p.Versions {
		if v.param("diff_id") == fmt.Sprint(one.ID) {
			want.VersionID = one.ID
		}
	}
	found, err := w.Merges.Contents(v, v.actor, p.Place.Ref, p.IID, want)
	if err != nil {
		return err
	}
	p.Shown, p.Since = found.Version, found.From
	s := diffSource{head: *p.P, files: found.Diff.Files, before: git.OID(found.Version.Base), after: git.OID(found.Version.Head)}
	if found.From != nil {
		s.before = git.OID(found.From.Head)
	}
	if s.threads, err = w.lineThreads(v, p, found); err != nil {
		return err
	}
	if v.param("threads") == "open" { // the first open thread, wherever it is
		if p.Elsewhere = s.threads.Next(); strings.HasPrefix(p.Elsewhere, "?") {
			p.Elsewhere = p.Path + "/diffs" + p.Elsewhere
		}
		if p.Elsewhere != "" {
			return nil
		}
	}
	if want.VersionID == 0 {
		if p.Elsewhere = s.threads.elsewhere(); p.Elsewhere != "" {
			if v.param("fragment") != "" { // this part of the other version
				page, note, _ := strings.Cut(p.Elsewhere, "#")
				p.Elsewhere = page + "&" + encode("file", v.param("file"), "fragment", "1") + "#" + note
			}
			return nil
		}
	}
	if v.session != nil && found.From == nil {
		s.marks = &viewedMarks{Action: p.Path + "/viewed", Token: v.csrf(), Version: found.Version.ID}
		if s.viewed, err = w.Merges.Viewed(v, v.actor, p.Place.Ref, p.IID); err != nil {
			return err
		}
	}
	s.again = func(o git.DiffOptions) (*git.Diff, error) {
		want.Options = o
		found, err := w.Merges.Contents(v, v.actor, p.Place.Ref, p.IID, want)
		if err != nil {
			return nil, err
		}
		return found.Diff, nil
	}
	p.Diff, err = v.diffView(s)
	return err
}

// VersionName names a version in the list of them, the newest first.
func (p mergePage) VersionName(i int) string {
	if i == 0 {
		return "latest version"
	}
	return fmt.Sprintf("version %d", len(p.Versions)-i)
}

// setViewed sets or removes the viewed mark of a file: "1" or "0", then the
// file.
func (w *Web) setViewed(v *visit, ref project.Ref) error {
	iid, err := v.number("id")
	if err != nil {
		return err
	}
	f := v.sent()
	version := v.whole(&f, "version")
	on, file, _ := strings.Cut(v.text("viewed"), " ")
	if err := w.Merges.SetViewed(v, v.actor, ref, iid, version, file, on == "1"); err != nil {
		return err
	}
	if v.param("fragment") != "" {
		v.w.WriteHeader(204)
		return nil
	}
	h, err := w.planHead(v, project.Place{Ref: ref}, "merges")
	if err != nil {
		return err
	}
	return v.redirect(fmt.Sprintf("%smerge_requests/%d/diffs?diff_id=%d#%s", h.Base, iid, version, file))
}
