package web

import (
	"slices"
	"strings"

	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/repo"
)

func (w *Web) comparePages() {
	w.projectPage("GET compare", anyone, w.chooseCompare)
	w.projectPage("GET compare/*", anyone, w.compare)
}

// comparePage is a comparison of two revisions, or the form to choose them.
type comparePage struct {
	head
	From, To string
	Straight bool
	Branches []string
	Done     bool // there is a comparison
	Commits  []commitDay
	Count    int
	Diff     diffView
	Error    string
}

func (comparePage) view() string { return "project/compare" }
func (comparePage) wide() bool   { return true }

func (p comparePage) title() string {
	if !p.Done {
		return "Compare · " + p.Project.FullName()
	}
	return shown(p.From) + " and " + shown(p.To) + " · " + p.Project.FullName()
}

// shownCommits is the maximum number of commits that a comparison shows, newest
// first.
const shownCommits = 50

// chooseCompare shows the form, and redirects to the comparison when the form is
// submitted.
func (w *Web) chooseCompare(v *visit, ref project.Ref) error {
	h, err := w.head(v, ref, "compare")
	if err != nil {
		return err
	}
	from, to := strings.TrimSpace(v.param("from")), strings.TrimSpace(v.param("to"))
	if from != "" && to != "" {
		dots := "..."
		if v.param("straight") == "true" {
			dots = ".."
		}
		return v.redirect(pathTo(h.Project.FullPath, "-", "compare", from+dots+to))
	}
	p := comparePage{head: h, From: h.Project.DefaultBranch}
	if p.Branches, err = w.branchNames(v, h); err != nil {
		return err
	}
	return v.show(p)
}

// compare shows "main...topic", the changes since the merge base, or "main..topic",
// the direct diff. Names of refs cannot contain two dots.
func (w *Web) compare(v *visit, ref project.Ref) error {
	h, err := w.head(v, ref, "compare")
	if err != nil {
		return err
	}
	p := comparePage{head: h}
	var ok bool
	if p.From, p.To, ok = strings.Cut(v.rest(), "..."); !ok {
		p.From, p.To, ok = strings.Cut(v.rest(), "..")
		p.Straight = true
	}
	if !ok || p.From == "" || p.To == "" {
		return errs.NotFound("")
	}
	if p.Branches, err = w.branchNames(v, h); err != nil {
		return err
	}
	found, err := w.Repos.Compare(v, v.actor, h.in(), repo.CompareOptions{From: p.From, To: p.To, Straight: p.Straight, IgnoreWhitespace: v.hideSpace()})
	if errs.Is(err, errs.KindNotFound) {
		p.Error = "One of the revisions does not exist."
		return v.again(p)
	}
	if err != nil {
		return err
	}
	p.Done, p.Count = true, len(found.Commits)
	newest := slices.Clone(found.Commits[max(0, len(found.Commits)-shownCommits):])
	slices.Reverse(newest)
	commits, err := found.Read(v, newest)
	if err != nil {
		return err
	}
	lines, err := w.bylines(v, h.Project, commits)
	if err != nil {
		return err
	}
	p.Commits = days(lines)
	p.Diff, err = v.diffView(diffSource{head: h, files: found.Diff.Files, before: found.Base, after: found.To, again: func(o git.DiffOptions) (*git.Diff, error) {
		return w.Repos.DiffCommits(v, v.actor, h.in(), found.Base, found.To, o)
	}})
	if err != nil {
		return err
	}
	return v.showDiff(p, p.Diff)
}
