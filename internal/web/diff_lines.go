package web

import (
	"bytes"
	"fmt"
	"strings"

	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/plan/diffnote"
	"svc/internal/project"
)

// maxDiffLines is the maximum number of lines that are added to a diff at once.
const maxDiffLines = 500

// diffLines sends the script lines of a file that a diff leaves out: lines
// since to to of the new file. offset is the difference to their numbers in the
// old file.
func (w *Web) diffLines(v *visit, ref project.Ref) error {
	p, err := w.codeHead(v, ref, "files")
	if err != nil {
		return err
	}
	file, err := w.Repos.File(v, v.actor, p.in(), p.Path, string(p.At))
	if err != nil {
		return err
	}
	text, err := readText(v, file, maxBlob)
	if err != nil {
		return err
	}
	since, to, offset := v.count("since", 1), v.count("to", 0), v.count("offset", 0)
	if since < 1 || to < since || to-since >= maxDiffLines {
		return errs.Invalid("Enter the first and the last line, at most 500.")
	}
	lines, err := w.highlighted(v, p.Path, text, file.BlobID)
	if err != nil {
		return err
	}
	var rows strings.Builder
	parallel := v.param("view") == "parallel"
	for n := since; n <= min(to, len(lines)); n++ {
		l := diffLine{kind: ' ', old: n + offset, new: n, html: lines[n-1]}
		if parallel {
			drawPair(&rows, &l, &l)
		} else {
			drawLine(&rows, l)
		}
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Total-Lines", fmt.Sprint(len(lines)))
	b := buffers.Get().(*bytes.Buffer)
	b.Reset()
	b.WriteString(rows.String())
	v.answer(200, b)
	return nil
}

// widen adds lines to the diff of a file that have threads but are away from all
// changes.
func (v *visit) widen(s diffSource, f *diffFile) error {
	if s.again == nil || s.threads == nil {
		return nil
	}
	shown := map[int64]bool{} // lines of the new file
	for l := range f.Lines() {
		if l.Kind != '-' {
			shown[l.New] = true
		}
	}
	wanted := map[int64]bool{}
	for _, one := range s.threads.files[f.NewPath] {
		if p := one.at; p.Type == diffnote.OnText && p.NewLine != nil && !shown[*p.NewLine] {
			for n := *p.NewLine - 3; n <= *p.NewLine+3; n++ {
				wanted[n] = true
			}
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	found, err := s.again(git.DiffOptions{Paths: []string{f.OldPath, f.NewPath}, Context: allContext, MaxFiles: 2, MaxLines: allContext, IgnoreWhitespace: v.hideSpace()})
	if err != nil {
		return err
	}
	for _, one := range found.Files {
		if one.NewPath == f.NewPath && one.Diff != "" {
			f.Diff = cutDiff(one, func(l git.DiffLine) bool { return l.Kind == '-' || shown[l.New] || wanted[l.New] })
		}
	}
	return nil
}

// cutDiff is the text of a diff with some of its lines.
func cutDiff(f git.FileDiff, keep func(git.DiffLine) bool) string {
	var text, part strings.Builder
	var first git.DiffLine
	var old, now int
	flush := func() {
		if part.Len() > 0 {
			fmt.Fprintf(&text, "@@ -%d,%d +%d,%d @@\n%s", start(first.Old, old), old, start(first.New, now), now, part.String())
		}
		part.Reset()
		old, now = 0, 0
	}
	for l := range f.Lines() {
		if !keep(l) {
			flush()
			continue
		}
		if part.Len() == 0 {
			first = l
		}
		if l.Kind != '+' {
			old++
		}
		if l.Kind != '-' {
			now++
		}
		part.WriteString(string(l.Kind) + strings.TrimSuffix(l.Text, "\n") + "\n")
	}
	flush()
	return text.String()
}

// start is the number at the head of a part: a side without lines names the line
// before.
func start(n int64, lines int) int64 {
	if lines == 0 {
		return n - 1
	}
	return n
}
