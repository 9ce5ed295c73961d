package web

import (
	"html/template"
	"slices"
	"strconv"
	"strings"

	"svc/internal/git"
	"svc/internal/plan/diffnote"
)

// maxTreeFiles is the maximum number of files in the tree of a comparison. For
// a larger comparison the tree has only the files of the page.
const maxTreeFiles = 400

// treeEntry is a changed file in the tree.
type treeEntry struct {
	git.FileDiff
	parts   []string // of its path
	to      string   // address
	viewed  bool
	threads int
}

// tree draws the tree of the changed files. from and to are the files of this
// page, per is the number of files per page.
func (d *diffView) tree(s diffSource, from, to, per int) {
	if d.Only != "" || d.Total < 2 {
		return
	}
	first, last := 0, len(s.files)
	if d.Total > maxTreeFiles {
		first, last, d.Part = from, to, true
	}
	base := strings.TrimSuffix(d.All, "?")
	var list []treeEntry
	for i := first; i < last; i++ {
		f := s.files[i]
		e := treeEntry{FileDiff: f, parts: strings.Split(f.NewPath, "/"), to: "#" + diffnote.FileCode(f.NewPath), viewed: s.marks != nil && s.viewed.Has(f), threads: s.threads.count(f.NewPath)}
		if i < from || i >= to {
			e.to = pageAddress(base, i/per+1) + e.to
		}
		list = append(list, e)
	}
	if d.Part {
		slices.SortStableFunc(list, func(a, b treeEntry) int { return comparePaths(a.parts, b.parts) })
	}
	var b strings.Builder
	drawTree(&b, list, 0)
	d.Tree = template.HTML(b.String())
}

// sortFiles puts the files in the order of their tree, so that the page and the
// tree agree; more files than the tree shows stay as git has them.
func sortFiles(files []git.FileDiff) []git.FileDiff {
	if len(files) > maxTreeFiles {
		return files
	}
	type entry struct {
		parts []string
		at    int
	}
	list := make([]entry, len(files))
	for i, f := range files {
		list[i] = entry{strings.Split(f.NewPath, "/"), i}
	}
	slices.SortStableFunc(list, func(a, b entry) int { return comparePaths(a.parts, b.parts) })
	sorted := make([]git.FileDiff, len(files)) // a diff must not be changed
	for i, e := range list {
		sorted[i] = files[e.at]
	}
	return sorted
}

// pageAddress is an address with another page.
func pageAddress(base string, page int) string {
	query, _, _ := strings.Cut(strings.TrimPrefix(base, "?"), "#")
	var kept []string
	for _, pair := range strings.Split(query, "&") {
		if name, _, _ := strings.Cut(pair, "="); name != "page" && name != "note" && pair != "" {
			kept = append(kept, pair)
		}
	}
	return "?" + strings.Join(append(kept, "page="+strconv.Itoa(page)), "&")
}

// comparePaths orders paths as trees do: directories first, then files.
func comparePaths(a, b []string) int {
	for i := range min(len(a), len(b)) {
		if aDir, bDir := i < len(a)-1, i < len(b)-1; aDir != bDir {
			if aDir {
				return -1
			}
			return 1
		}
		if c := strings.Compare(a[i], b[i]); c != 0 {
			return c
		}
	}
	return len(a) - len(b)
}

// drawTree writes the entries below a directory, which have their first parts in
// common. Directories that have a single entry are written together with it.
func drawTree(b *strings.Builder, list []treeEntry, depth int) {
	b.WriteString("<ul>")
	for i := 0; i < len(list); {
		if len(list[i].parts) == depth+1 {
			drawTreeFile(b, list[i])
			i++
			continue
		}
		n := i + 1
		for n < len(list) && len(list[n].parts) > depth+1 && list[n].parts[depth] == list[i].parts[depth] {
			n++
		}
		below := depth + 1
		for sameDirectory(list[i:n], below) {
			below++
		}
		b.WriteString("<li><details open><summary>" + template.HTMLEscapeString(shown(strings.Join(list[i].parts[depth:below], "/"))) + "</summary>")
		drawTree(b, list[i:n], below)
		b.WriteString("</details></li>")
		i = n
	}
	b.WriteString("</ul>")
}

// sameDirectory reports whether all entries are in the same directory at a depth.
func sameDirectory(list []treeEntry, depth int) bool {
	for _, e := range list {
		if len(e.parts) <= depth+1 || e.parts[depth] != list[0].parts[depth] {
			return false
		}
	}
	return true
}

func drawTreeFile(b *strings.Builder, e treeEntry) {
	kind := diffFile{FileDiff: e.FileDiff}.Kind()
	letter := kind[:1]
	if kind == "Changed" {
		letter = "M" // as in git
	}
	class := ""
	if e.viewed {
		class = ` class="seen"`
	}
	b.WriteString("<li" + class + `><a href="` + template.HTMLEscapeString(e.to) + `"><b class="k" title="` + kind + `">` + letter + "</b> " + template.HTMLEscapeString(shown(e.parts[len(e.parts)-1])) + "</a>")
	if e.threads > 0 {
		b.WriteString(`<b class="t" title="` + plural(e.threads, "thread") + `">` + strconv.Itoa(e.threads) + "</b>")
	}
	if e.Added > 0 {
		b.WriteString(`<i class="plus">+` + strconv.Itoa(e.Added) + "</i>")
	}
	if e.Removed > 0 {
		b.WriteString(`<i class="minus">−` + strconv.Itoa(e.Removed) + "</i>")
	}
	b.WriteString("</li>")
}
