package web

import (
	"slices"
	"strings"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/repo"
)

func (w *Web) refPages() {
	w.projectPage("GET refs", anyone, w.searchRefs)
	w.projectPage("GET refs/switch", anyone, w.switchRef)
	w.projectPage("GET find_file/*", anyone, w.findFile)
}

// switcher is the menu that switches a page to another branch or tag, for the
// templates.
type switcher struct{ Base, To, Ref, Path string }

func newSwitcher(base, to, ref, path string) switcher { return switcher{base, to, ref, path} }

// shownNames is the number of names that the switcher loads at once.
const shownNames = 50

// searchRefs sends the script of the ref switcher the branches and tags that
// match a search, a page at a time.
func (w *Web) searchRefs(v *visit, ref project.Ref) error {
	pg := db.Paging{Limit: shownNames, Offset: (v.pageNumber() - 1) * shownNames}
	var found struct {
		Branches     []string `json:"Branches"`
		Tags         []string `json:"Tags"`
		MoreBranches bool
		MoreTags     bool
	}
	for _, kind := range []struct {
		of   repo.RefKind
		to   *[]string
		more *bool
	}{{repo.BranchRef, &found.Branches, &found.MoreBranches}, {repo.TagRef, &found.Tags, &found.MoreTags}} {
		page, err := w.Repos.RefNames(v, v.actor, ref, kind.of, strings.TrimSpace(v.param("search")), pg)
		if err != nil {
			return err
		}
		*kind.to, *kind.more = page.Items, page.More
	}
	return v.json(found)
}

// refTargets are the pages that the switcher can open.
var refTargets = []string{"tree", "blob", "blame", "commits", "find_file"}

// switchRef redirects to the same page of another branch, tag or commit, or to
// the root if the path does not exist there.
func (w *Web) switchRef(v *visit, ref project.Ref) error {
	p, err := w.Projects.Summary(v, v.actor, ref)
	if err != nil {
		return err
	}
	to, at, name := v.param("destination"), strings.Trim(v.param("path"), "/"), strings.TrimSpace(v.param("ref"))
	if !slices.Contains(refTargets, to) {
		to = "tree"
	}
	if name == "" {
		name = p.DefaultBranch
	}
	_, c, err := w.Repos.Commit(v, v.actor, project.RefTo(p.ID), name, false)
	if errs.Is(err, errs.KindNotFound) || errs.Is(err, errs.KindInvalid) {
		v.setFlash("bad", "The branch, tag or commit "+shown(name)+" does not exist.")
		return v.redirect(pathTo(p.FullPath, "-", "branches"))
	}
	if err != nil {
		return err
	}
	if at == "" {
		if to == "blob" || to == "blame" {
			to = "tree"
		}
		return v.redirect(pathTo(p.FullPath, "-", to, name))
	}
	if to == "commits" || to == "find_file" {
		return v.redirect(pathTo(p.FullPath, "-", to, name, at))
	}
	switch kind, err := w.Repos.PathType(v, v.actor, project.RefTo(p.ID), string(c.ID), at); {
	case errs.Is(err, errs.KindNotFound):
		v.setFlash("bad", shown(at)+" does not exist at "+shown(name)+".")
		to, at = "tree", ""
	case err != nil:
		return err
	case kind == git.TypeTree:
		to = "tree"
	case to == "tree":
		to = "blob"
	}
	return v.redirect(pathTo(p.FullPath, "-", to, name, at))
}

// findPage searches the files of a revision by their paths.
type findPage struct {
	codeHead
	Search string
	Found  *repo.FileMatches
}

func (findPage) view() string    { return "project/find_file" }
func (p findPage) title() string { return "Find file · " + p.Project.FullName() }

// shownFiles is the number of files that a search shows.
const shownFiles = 50

func (w *Web) findFile(v *visit, ref project.Ref) error {
	text := v.param("search")
	if v.param("format") == "json" {
		return w.findFileJSON(v, ref, text)
	}
	h, err := w.codeHead(v, ref, "files")
	if err != nil {
		return err
	}
	p := findPage{codeHead: h, Search: text}
	if p.Found, err = w.Repos.FindFiles(v, v.actor, p.in(), string(p.At), text, shownFiles); err != nil {
		return err
	}
	return v.show(p)
}

// findFileJSON sends the script of the page the files that match.
func (w *Web) findFileJSON(v *visit, ref project.Ref, text string) error {
	_, _, id, err := w.split(v, ref, v.rest())
	if err != nil {
		return err
	}
	found, err := w.Repos.FindFiles(v, v.actor, ref, string(id), text, shownFiles)
	if err != nil {
		return err
	}
	type match struct {
		Path  string   `json:"path"`
		Parts []string `json:"parts"` // every second one matched
	}
	list := make([]match, len(found.Items))
	for i, m := range found.Items {
		list[i] = match{m.Path, matchParts(m)}
	}
	return v.json(map[string]any{"files": list, "total": found.Total, "searched": found.Files, "cut": found.Cut})
}

// matchParts cuts a path into parts; every second one matched the search.
func matchParts(m repo.FileMatch) []string {
	parts := []string{""}
	matched := false
	next := 0
	for i, r := range m.Path {
		on := next < len(m.At) && m.At[next] == i
		if on {
			next++
		}
		if on != matched {
			parts, matched = append(parts, ""), on
		}
		parts[len(parts)-1] += string(r)
	}
	return parts
}
