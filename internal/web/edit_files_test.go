package web_test

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/db/dbtest"
	"svc/internal/git/gittest"
)

func TestEditFiles(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, dbtest.SQLite(t))
	_, ada := s.User(t, "ada")
	s.User(t, "eve")
	id := newProject(t, s, ada, "p", "public")
	r := s.Repository(t, id, gittest.Commit{Changes: change("a.txt", "one\n", "b.txt", "two\n", "win.txt", "x\r\ny\r\n", "d/c.txt", "c\n")})
	b := newBrowser(t, s).signIn("ada", password)
	const at = "/ada/p/-/edit_files/main"
	last := func(n string, p answer) string {
		return regexp.MustCompile(`name="last\.` + n + `" value="(\w*)"`).FindStringSubmatch(p.body)[1]
	}
	page := b.get(at+"/a.txt").want(200, ">\none\n</textarea>", `name="kind.0" value="update"`)
	form := url.Values{"authenticity_token": {page.token()}, "branch": {"main"}, "message": {"Change several"},
		"kind.0": {"update"}, "from.0": {"a.txt"}, "path.0": {"a.txt"}, "content.0": {"ONE\r\n"}, "last.0": {last("0", page)}}
	send := func(pairs ...string) answer {
		sent := url.Values{}
		for name, values := range form {
			sent[name] = values
		}
		for i := 0; i+1 < len(pairs); i += 2 {
			sent.Set(pairs[i], pairs[i+1])
		}
		return b.post(at, sent)
	}
	// Files are added one after the other; the form keeps what was typed.
	page = send("do", "add", "add", "win.txt").want(200, ">\nONE\n</textarea>", `name="crlf.1" value="1"`)
	form.Set("kind.1", "update")
	form.Set("from.1", "win.txt")
	form.Set("path.1", "moved/win.txt")
	form.Set("content.1", "x\r\nz\r\n")
	form.Set("crlf.1", "1")
	form.Set("last.1", last("1", page))
	send("do", "add", "add", "a.txt").want(422, "a.txt is already open", ">\nONE\n</textarea>")
	send("do", "add", "add", "").want(422, "Enter the path")
	send("do", "add", "add", "new/file.txt").want(200, `name="kind.2" value="create"`)
	form.Set("kind.2", "create")
	form.Set("path.2", "new/file.txt")
	form.Set("content.2", "fresh\n")
	page = send("do", "add", "add", "b.txt").want(200)
	form.Set("kind.3", "update")
	form.Set("from.3", "b.txt")
	form.Set("path.3", "b.txt")
	form.Set("content.3", "two\n")
	form.Set("last.3", last("3", page))
	send("do", "delete 3").want(200, `name="kind.3" value="delete"`)
	form.Set("kind.3", "delete")
	send("do", "remove 0").want(200, `name="path.0" value="moved/win.txt"`).not("ONE")
	// Another commit changed a file: nothing is committed, nothing is lost.
	s.Check(t, apptest.Call{Do: "PUT /projects/ada%2Fp/repository/files/a.txt", As: ada, Status: 200, Form: url.Values{"branch": {"main"}, "content": {"other"}, "commit_message": {"Other"}}})
	send("do", "commit").want(422, "has changed since you started editing", ">\nONE\n</textarea>", ">\nfresh\n</textarea>")
	form.Set("last.0", last("0", b.get(at+"/a.txt")))
	send("do", "commit").leads("/ada/p/-/tree/main")
	if got := r.Git("diff", "--name-status", "-M", "main~1", "main"); got != "M\ta.txt\nD\tb.txt\nR050\twin.txt\tmoved/win.txt\nA\tnew/file.txt" && !strings.Contains(got, "new/file.txt") {
		t.Errorf("the commit has %q", got)
	}
	if got := r.Git("show", "main:moved/win.txt"); !strings.Contains(got, "x\r\nz") {
		t.Errorf("the moved file has %q", got)
	}
	if got := r.Git("show", "main:a.txt"); got != "ONE\n" && got != "ONE" {
		t.Errorf("a.txt has %q", got)
	}
	page = b.get(at + "/d/c.txt")
	nothing := url.Values{"authenticity_token": {page.token()}, "do": {"commit"}, "branch": {"main"}, "kind.0": {"update"}, "from.0": {"d/c.txt"}, "path.0": {"d/c.txt"}, "content.0": {"c\n"}, "last.0": {last("0", page)}}
	b.post(at, nothing).want(422, "no changes to commit")
	// To a new branch, with a merge request.
	nothing.Set("content.0", "d\n")
	nothing.Set("branch", "topic")
	nothing.Set("propose", "1")
	p := b.post(at, nothing)
	if to := p.header.Get("Location"); p.status != 303 || !strings.HasPrefix(to, "/ada/p/-/merge_requests/new?") {
		t.Fatalf("status %d to %q", p.status, to)
	}
	newBrowser(t, s).signIn("eve", password).get(at).want(403)
	newBrowser(t, s).get(at).want(303)
	newBrowser(t, s).post(at, url.Values{"kind.0": {"create"}}).want(422)

	// Directories and uploads.
	const dir = "/ada/p/-/new_dir/main/d"
	b.submit(dir, dir, "path", "", "branch", "main").want(422, "can&#39;t be blank")
	b.submit("/ada/p/-/new_dir/main", "/ada/p/-/new_dir/main", "path", "d", "branch", "main").want(422, "already exists")
	b.submit(dir, dir, "path", "e", "branch", "main").leads("/ada/p/-/tree/main/d/e")
	const up = "/ada/p/-/upload/main/d"
	b.uploadFiles(t, up, map[string]string{}, "branch", "main").want(422, "Choose a file")
	b.uploadFiles(t, up, map[string]string{"x.bin": "\x00\x01", "y.txt": "y"}, "branch", "main", "message", "Upload").leads("/ada/p/-/tree/main/d")
	b.uploadFiles(t, up, map[string]string{"y.txt": "z"}, "branch", "main").want(422, "already exists")
	b.uploadFiles(t, up, map[string]string{"y.txt": "z"}, "branch", "main", "replace", "1").leads("/ada/p/-/tree/main/d")
	b.get("/ada/p/-/raw/main/d/y.txt").want(200, "z")
	b.uploadFiles(t, up, map[string]string{"big": strings.Repeat("x", 17<<20)}, "branch", "main").want(413)
}

// uploadFiles submits files by the form of a page.
func (b *browser) uploadFiles(t *testing.T, at string, files map[string]string, pairs ...string) answer {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	_ = form.WriteField("authenticity_token", b.get(at).want(200).token())
	for i := 0; i+1 < len(pairs); i += 2 {
		_ = form.WriteField(pairs[i], pairs[i+1])
	}
	for name, content := range files {
		w, err := form.CreateFormFile("files", name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte(content))
	}
	_ = form.Close()
	r, err := http.NewRequestWithContext(t.Context(), "POST", b.s.URL+at, &body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", form.FormDataContentType())
	return b.send(r)
}
