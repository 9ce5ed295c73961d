package web_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
)

// numbered returns numbered lines with some of them changed.
func numbered(lines int, changed ...int) string {
	var b strings.Builder
	for i := 1; i <= lines; i++ {
		word := "same"
		for _, n := range changed {
			if n == i {
				word = "changed"
			}
		}
		fmt.Fprintf(&b, "line %d is %s\n", i, word)
	}
	return b.String()
}

// TestDiffPages reviews the changes of a merge request over three versions.
func TestDiffPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		s.User(t, "eve")
		id := newProject(t, s, ada, "p", "public")
		r := s.Repository(t, id, gittest.Commit{Message: "Begin\n", Changes: change("src/long.txt", numbered(100), "src/space.txt", "a\nb\n", "old.txt", "x\n", "pic.png", "\x89PNG\x00")})
		push := func(path, content string) {
			s.Check(t, apptest.Call{Do: "PUT /projects/ada%2Fp/repository/files/" + url.PathEscape(path), As: ada, Form: url.Values{"branch": {"topic"}, "content": {content}, "commit_message": {"Two"}}, Status: 200})
		}
		r.Commit(gittest.Commit{Branch: "topic", Message: "One\n", Parents: []string{r.Tip("main")}, Changes: append(change("src/long.txt", numbered(100, 50), "src/space.txt", "a\n  b\n", "src/deep/er/new.txt", "n\n", "go.sum", "sum\n", "pic.png", "\x89PNG\x00\x01"),
			gittest.Change{Path: "old.txt", Delete: true})})
		s.Check(t, apptest.Call{Do: "POST /projects/ada%2Fp/merge_requests", As: ada, Form: url.Values{"source_branch": {"topic"}, "target_branch": {"main"}, "title": {"T"}}, Status: 201})
		b, eve, guest := newBrowser(t, s).signIn("ada", password), newBrowser(t, s).signIn("eve", password), newBrowser(t, s)
		const one = "/ada/p/-/merge_requests/1"
		const diffs = one + "/diffs"

		// The tree joins directories; changed words are marked in lines.
		page := b.get(diffs).want(200, "6 changed files", "<summary>src</summary>", "<summary>deep/er</summary>", `<td>line 50 is <mark>same</mark></td>`, `<td>line 50 is <mark>changed</mark></td>`,
			"The file is generated", "0</span>/6 files viewed", `alt="Before"`, `alt="After"`, "Show full file", "hidden><details")
		version := regexp.MustCompile(`name="version" value="(\d+)"`).FindStringSubmatch(page.body)[1]
		guest.get(diffs).want(200).not("files viewed", "Comment on a line", `name="viewed"`)

		// One file, one file at a time, the whole file, and its fragment.
		b.get(diffs+"?file=src/long.txt").want(200, "One of 6 changed files", "All files").not("space.txt", "line 10 is")
		b.get(diffs+"?file=src/long.txt&context=all").want(200, "line 1 is", "line 100 is")
		b.get(diffs+"?file=src/long.txt&context=5").want(200, "line 45 is", "line 55 is").not("<td>line 44", "<td>line 56")
		b.get(diffs+"?file=go.sum&fragment=1").want(200, "<td>sum</td>", "0 of 0 threads").not("<html", "space.txt")
		b.get(diffs + "?file=none&fragment=1").want(404)
		b.get(diffs+"?file=none").want(200, "This file has no changes")
		guest.get(diffs+"?single_file=true&page=2").want(200, "<article", `rel="next"`, `rel="prev"`)
		if got := strings.Count(guest.get(diffs).body, "<article"); got != 1 {
			t.Errorf("%d files at a time", got)
		}
		guest.get(diffs+"?single_file=false&w=1").want(200, "Only whitespace changed.", "w=0")
		guest.get(diffs+"?w=0").want(200, "<mark>  </mark>b")

		// Hidden lines of a file, in both views.
		lines := "/ada/p/-/diff_lines/" + r.Tip("topic") + "/src/long.txt"
		guest.get(lines+"?since=10&to=11&offset=0").want(200, `<tr class="same"><td data-n="10"></td><td data-n="10"></td><td>line 10 is same</td></tr>`, "line 11").not("line 12", "<html")
		guest.get(lines+"?since=99&to=120&offset=-2&view=parallel").want(200, `<td data-n="97"></td><td class="same">line 99`, "line 100")
		for query, status := range map[string]int{"?since=5&to=4": 422, "?since=0&to=4": 422, "?since=1&to=501": 422, "?since=x": 422, "?since=1&to=500": 200, "?since=900&to=901": 200} {
			guest.get(lines + query).want(status)
		}
		guest.get("/ada/p/-/diff_lines/main/none.txt?since=1&to=2").want(404)

		// Comments on several lines, on a line away from all changes, and on a file.
		say := func(who *browser, more ...string) answer {
			return who.submit(diffs, one+"/diff_notes", append([]string{"version", version}, more...)...)
		}
		say(eve, "path", "src/long.txt", "from", "49_49", "to", "0_50", "note", "Both lines").want(303)
		say(eve, "path", "src/long.txt", "side", "new", "line", "10", "note", "Far away").want(303)
		say(eve, "path", "src/long.txt", "side", "old", "first", "48", "line", "50", "note", "Removed ones").want(303)
		say(eve, "path", "pic.png", "type", "file", "note", "The picture").want(303)
		say(eve, "path", "src/long.txt", "to", "7_9", "note", "x").leads(diffs + "?diff_id=" + version)
		say(eve, "path", "none.txt", "line", "1", "note", "x").leads(diffs + "?diff_id=" + version)
		page = b.get(diffs).want(200, "Comment on lines 49 to &#43;50", "Comment on lines 48 to −50", "Far away", "The picture", "line 7 is", "line 13 is", "4 of 4 threads open", `data-from="49_49" data-to="0_50"`, `<div class="df-above">`).
			not("line 14 is", "line 6 is")
		b.get(one).want(200, "src/long.txt, lines 49 to &#43;50", "/diffs?note=")
		s.Check(t, apptest.Call{Do: "GET /projects/ada%2Fp/merge_requests/1/discussions", As: ada, Status: 200,
			Want: `[{"notes":[{"position":{"line_range":{"start":{"type":null,"old_line":49,"new_line":49},"end":{"type":"new","old_line":null,"new_line":50}}}}]},{},{},{}]`})

		// Scripts get the file, or the reason of the refusal.
		file := diffs + "?file=src%2Flong.txt"
		eve.submit(file, one+"/diff_notes?fragment=1&file=src%2Flong.txt", "version", version, "path", "src/long.txt", "to", "0_50", "note", "").want(422, "can't be blank").not("<html")
		eve.submit(file, one+"/diff_notes?fragment=1&file=src%2Flong.txt", "version", version, "path", "src/long.txt", "to", "0_50", "note", "From a script").want(200, "From a script", "5 of 5 threads").not("<html", "space.txt")

		// Viewed files; a push that changes the file removes the mark.
		code := regexp.MustCompile(`value="1 (\w+)" role="checkbox"`)
		articles := strings.Split(page.body, "<article")
		mark := func(path, on string) {
			t.Helper()
			for _, a := range articles {
				if strings.Contains(a, `aria-label="`+path+`"`) {
					b.submit(diffs, one+"/viewed", "version", version, "viewed", on+" "+code.FindStringSubmatch(a)[1]).want(303)
				}
			}
		}
		mark("src/long.txt", "1")
		mark("src/space.txt", "1")
		mark("go.sum", "1")
		mark("go.sum", "0")
		b.get(diffs).want(200, "2</span>/6 files viewed", "You have viewed this file.")
		eve.get(diffs).want(200, "0</span>/6 files viewed")
		b.submit(diffs, one+"/viewed", "version", version, "viewed", "1 none").want(404)

		// A push changes the line of one thread and moves others.
		push("src/long.txt", "first\n"+numbered(100, 50, 10))
		page = b.get(diffs).want(200, "1</span>/6 files viewed", "latest version", "Both lines", `data-from="49_50" data-to="0_51"`, "Outdated")
		if _, list, _ := strings.Cut(page.body, `class="df-list"`); strings.Contains(list, "Far away") || !strings.Contains(list, "Removed ones") {
			t.Error("threads are not where they belong")
		}
		note := regexp.MustCompile(`data-note="(\d+)"[^>]*><b class="mono">[^<]*line 10</b>`).FindStringSubmatch(page.body)[1]
		b.get(diffs + "?note=" + note).leads(diffs + "?diff_id=" + version + "&note=" + note + "#note_" + note)
		b.get(diffs+"?diff_id="+version+"&note="+note).want(200, "Far away")
		// The overview loads the lines of a thread, also from another version.
		b.get(one).want(200, `data-thread-lines="src/long.txt"><a class="button slim" href="`+diffs+"?note="+note+"#note_"+note)
		part := "&note=" + note + "&file=src%2Flong.txt&fragment=1"
		b.get(diffs + "?fragment=1&file=src%2Flong.txt&note=" + note).leads(diffs + "?diff_id=" + version + part + "#note_" + note)
		b.get(diffs+"?diff_id="+version+part).want(200, "Far away", `class="talkrow"`).not("<html")

		// Two versions are compared: only the changes between them are shown.
		first := regexp.MustCompile(`<option value="(\w{40})"`).FindStringSubmatch(page.body)[1]
		between := diffs + "?start_sha=" + first
		page = b.get(between).want(200, "1 changed file", "data-new-side", "version 1", "<td>first</td>").not("files viewed", "space.txt")
		latest := regexp.MustCompile(`name="version" value="(\d+)"`).FindStringSubmatch(page.body)[1]
		b.submit(between, one+"/diff_notes", "version", latest, "path", "src/long.txt", "to", "0_11", "note", "Between versions").want(303)
		b.get(between).want(200, "Between versions")
		b.get(diffs).want(200, "Between versions")
		b.get(diffs + "?start_sha=" + r.Tip("main")).want(404)

		// The page of a note has its file even if that is at the end of a long diff.
		b.get(diffs + "?page=1&note=" + note).want(303)
		b.submit(one, one+"/turn", "event", "close").want(303)
		b.get(diffs).want(200, "Both lines")
	})
}
