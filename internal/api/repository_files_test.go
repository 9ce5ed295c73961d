package api_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
)

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func TestRepositoryFiles(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		big := strings.Repeat("0123456789abcdef", 1<<17) // 2 MiB
		id, r := codeProject(t, s, alice, "code", gittest.Commit{Message: "One", Changes: []gittest.Change{
			{Path: "dir/a.txt", Content: "one\ntwo\n"}, {Path: "run", Content: "x", Mode: "100755"}, {Path: "big", Content: big}, {Path: "ü ß", Content: "ö"},
		}})
		one := r.Tip("refs/heads/main")
		blob := r.Git("rev-parse", "main:dir/a.txt")
		two := r.Commit(gittest.Commit{Message: "Two", Changes: file("c", "c\n")})
		at := fmt.Sprintf("/projects/%d/repository/files/", id)
		head := map[string]string{
			"X-Svc-Blob-Id": blob, "X-Svc-Commit-Id": two, "X-Svc-Last-Commit-Id": one, "X-Svc-File-Name": "a.txt", "X-Svc-File-Path": "dir/a.txt",
			"X-Svc-Ref": "main", "X-Svc-Size": "8", "X-Svc-Encoding": "base64", "X-Svc-Execute-Filemode": "false",
			"X-Svc-Content-Sha256": digest("one\ntwo\n"),
		}
		s.Table(t, []apptest.Call{
			{Do: "GET " + at + "dir%2Fa.txt?ref=main", As: alice, Status: 200, WantHeader: head, Want: `{"file_name":"a.txt","file_path":"dir/a.txt","size":8,"encoding":"base64",
				"content_sha256":"<any>","ref":"main","blob_id":"` + blob + `","commit_id":"` + two + `","last_commit_id":"` + one + `","execute_filemode":false,"content":"b25lCnR3bwo="}`},
			{Do: "HEAD " + at + "dir%2Fa%2Etxt?ref=main", As: alice, Status: 200, WantHeader: head},
			{Do: "GET " + at + "run?ref=HEAD", As: alice, Status: 200, Want: `{"execute_filemode":true,"ref":"HEAD"}`},
			{Do: "GET " + at + "%C3%BC%20%C3%9F?ref=main", As: alice, Status: 200, Want: `{"file_name":"ü ß","content":"w7Y="}`},
			{Do: "GET " + at + "run", As: alice, Status: 400, Want: `{"error":"ref is missing"}`},
			{Do: "GET " + at + "dir?ref=main", As: alice, Status: 404, Want: `{"message":"404 File Not Found"}`},
			{Do: "GET " + at + "c?ref=" + one, As: alice, Status: 404},
			{Do: "GET " + at + "c?ref=nope", As: alice, Status: 404, Want: `{"message":"404 Commit Not Found"}`},
			{Do: "HEAD " + at + "c/raw?ref=main", As: alice, Status: 200, WantHeader: map[string]string{"Content-Length": "2", "X-Svc-Size": "2"}},
			{Do: "GET " + at + "c/raw?ref=nope", As: alice, Status: 404},
			{Do: "GET " + at + "dir%2Fa.txt/blame?ref=main", As: alice, Status: 200, WantHeader: head, Want: `[{"commit":{"id":"` + one + `","parent_ids":[],"message":"One"},"lines":["one","two"]}]`},
			{Do: "GET " + at + "dir%2Fa.txt/blame?ref=main&range[start]=2&range[end]=2", As: alice, Status: 200, Want: `[{"lines":["two"]}]`},
			{Do: "GET " + at + "dir%2Fa.txt/blame?ref=main&range[start]=8&range[end]=9", As: alice, Status: 200, Want: `[]`},
			{Do: "GET " + at + "dir%2Fa.txt/blame?ref=main&range[start]=2&range[end]=1", As: alice, Status: 400, Want: `{"error":"range[start] must be less than or equal to range[end]"}`},
			{Do: "GET " + at + "dir%2Fa.txt/blame?ref=main&range[start]=0&range[end]=1", As: alice, Status: 400},
			{Do: "GET " + at + "dir%2Fa.txt/blame?ref=main&range[start]=1", As: alice, Status: 400, Want: `{"error":"range[end] is missing"}`},
		})
		raw := s.Check(t, apptest.Call{Do: "GET " + at + "big/raw", As: alice, Status: 200, WantHeader: map[string]string{
			"Content-Type": "text/plain; charset=utf-8", "Content-Disposition": `inline; filename=big`, "X-Svc-Ref": "HEAD"}})
		if string(raw.Body) != big {
			t.Errorf("%d bytes came raw", len(raw.Body))
		}
		var whole struct {
			Content string
			SHA     string `json:"content_sha256"`
		}
		answer := s.Check(t, apptest.Call{Do: "GET " + at + "big?ref=main", As: alice, Status: 200})
		answer.JSON(t, &whole)
		if content, err := base64.StdEncoding.DecodeString(whole.Content); err != nil || string(content) != big {
			t.Errorf("%d bytes came encoded, %v", len(content), err)
		}
		s.Check(t, apptest.Call{Do: "GET " + at + "big?ref=main", As: alice, Status: 304, Header: map[string]string{"If-None-Match": answer.Header.Get("ETag")}})
		if want := digest(big); whole.SHA != want || answer.Header.Get("X-Svc-Content-Sha256") != want {
			t.Errorf("sha256 is %s, want %s", whole.SHA, want)
		}
	})
}

func TestWriteFiles(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id, r := codeProject(t, s, alice, "code", gittest.Commit{Changes: file("a", "a\n")})
		one := r.Tip("refs/heads/main")
		at := fmt.Sprintf("/projects/%d/repository/files/", id)
		body := func(branch, more string) string {
			return fmt.Sprintf(`{"branch":%q,"commit_message":"Change it","author_name":"Bob","author_email":"bob@example.org"%s}`, branch, more)
		}
		s.Table(t, []apptest.Call{
			{Do: "POST " + at + "dir%2Fnew.txt", As: alice, JSON: body("main", `,"content":"some"`), Status: 201, Want: `{"file_path":"dir/new.txt","branch":"main"}`},
			{Do: "POST " + at + "dir%2Fnew.txt", As: alice, JSON: body("main", `,"content":"some"`), Status: 400, Want: `{"message":"A file with this name already exists"}`},
			{Do: "POST " + at + "dir", As: alice, JSON: body("main", `,"content":"some"`), Status: 400},
			{Do: "POST " + at + "empty", As: alice, JSON: body("main", `,"content":""`), Status: 201},
			{Do: "POST " + at + "exe", As: alice, JSON: body("main", `,"content":"AAEC","encoding":"base64","execute_filemode":true`), Status: 201},
			{Do: "POST " + at + "no", As: alice, JSON: body("main", ""), Status: 400, Want: `{"error":"content is missing"}`},
			{Do: "POST " + at + "no", As: alice, JSON: `{"branch":"main","content":"x"}`, Status: 400, Want: `{"error":"commit_message is missing"}`},
			{Do: "POST " + at + "no", As: alice, JSON: body("nope", `,"content":"x"`), Status: 400, Want: `{"message":"You can only create or edit files when you are on a branch"}`},
			{Do: "POST " + at + "yes", As: alice, JSON: body("topic", `,"content":"x","start_branch":"main"`), Status: 201},
			{Do: "PUT " + at + "a", As: alice, JSON: body("main", `,"content":"changed"`), Status: 200, Want: `{"file_path":"a","branch":"main"}`},
			{Do: "PUT " + at + "a", As: alice, JSON: body("main", `,"content":"again","last_commit_id":"`+one+`"`), Status: 400},
			{Do: "PUT " + at + "exe", As: alice, JSON: body("main", `,"content":"text","execute_filemode":false`), Status: 200},
			{Do: "PUT " + at + "gone", As: alice, JSON: body("main", `,"content":"x"`), Status: 400, Want: `{"message":"A file with this name doesn't exist"}`},
			{Do: "DELETE " + at + "gone?branch=main&commit_message=m", As: alice, Status: 400, Want: `{"message":"A file with this name doesn't exist"}`},
			{Do: "DELETE " + at + "empty?branch=main", As: alice, Status: 400, Want: `{"error":"commit_message is missing"}`},
			{Do: "DELETE " + at + "empty", As: alice, JSON: `{"branch":"main","commit_message":"m"}`, Status: 204},
		})
		var now struct {
			LastCommitID string `json:"last_commit_id"`
		}
		s.Check(t, apptest.Call{Do: "GET " + at + "a?ref=main", As: alice, Status: 200, Want: `{"content":"Y2hhbmdlZA=="}`}).JSON(t, &now)
		s.Check(t, apptest.Call{Do: "PUT " + at + "a", As: alice, JSON: body("main", `,"content":"again","last_commit_id":"`+now.LastCommitID+`"`), Status: 200})
		if got := r.Git("ls-tree", "-r", "--format=%(objectmode) %(path)", "main"); got != "100644 a\n100644 dir/new.txt\n100644 exe" {
			t.Errorf("the tree is\n%s", got)
		}
		if got := r.Git("log", "-1", "--format=%an %ae %cn %s", "main"); got != "Bob bob@example.org alice Change it" {
			t.Errorf("the commit is %q", got)
		}
	})
}

// TestFileHeadersOfClients checks that files have the headers that public clients
// read, and that browsers show them to pages of other origins.
func TestFileHeadersOfClients(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id, r := codeProject(t, s, alice, "code", gittest.Commit{Changes: file("a", "a\n")})
		got := s.Check(t, apptest.Call{Do: fmt.Sprintf("HEAD /projects/%d/repository/files/a?ref=main", id), As: alice, Status: 200,
			Header: map[string]string{"Origin": "https://cms.example"},
			WantHeader: map[string]string{
				"X-Svc-Blob-Id": r.Git("rev-parse", "main:a"), "X-Gitlab-Blob-Id": r.Git("rev-parse", "main:a"), "X-Gitlab-Commit-Id": r.Tip("main"),
				"X-Gitlab-Last-Commit-Id": r.Tip("main"), "X-Gitlab-Content-Sha256": digest("a\n"), "X-Gitlab-Encoding": "base64", "X-Gitlab-File-Name": "a",
				"X-Gitlab-File-Path": "a", "X-Gitlab-Ref": "main", "X-Gitlab-Size": "2", "X-Gitlab-Execute-Filemode": "false",
			}})
		exposed := strings.Split(got.Header.Get("Access-Control-Expose-Headers"), ", ")
		for _, name := range []string{"X-Gitlab-Blob-Id", "X-Gitlab-Last-Commit-Id", "X-Svc-Blob-Id", "Link", "X-Total"} {
			if !slices.Contains(exposed, name) {
				t.Errorf("%s is not exposed: %v", name, exposed)
			}
		}
	})
}

// TestFileHeaders checks that the names of headers contain the service name.
func TestFileHeaders(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id, r := codeProject(t, s, alice, "code", gittest.Commit{Changes: file("a", "a\n")})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("HEAD /projects/%d/repository/files/a?ref=main", id), As: alice, Status: 200,
			WantHeader: map[string]string{"X-Gitlab-Blob-Id": r.Git("rev-parse", "main:a"), "X-Svc-Blob-Id": "-"}})
	}, apptest.ServiceName("gitlab"))
}
