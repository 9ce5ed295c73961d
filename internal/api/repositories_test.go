package api_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
	"svc/internal/waittest"
)

// newCode creates a public project with commits and returns its path in the API and
// its repository.
func newCode(t *testing.T, s *apptest.Server, token, name string, history ...gittest.Commit) (string, *gittest.Repo) {
	t.Helper()
	var made struct{ ID int64 }
	s.Check(t, apptest.Call{Do: "POST /projects", As: token, JSON: fmt.Sprintf(`{"path":%q,"visibility":"public"}`, name), Status: 201}).JSON(t, &made)
	return fmt.Sprintf("/projects/%d", made.ID), s.Repository(t, made.ID, history...)
}

func writeFiles(files ...string) gittest.Commit {
	var c gittest.Commit
	for i := 0; i+1 < len(files); i += 2 {
		c.Changes = append(c.Changes, gittest.Change{Path: files[i], Content: files[i+1]})
	}
	return c
}

func TestTree(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		first := writeFiles("b.txt", "b", "dir/in/deep.txt", "deep", "dir/a.txt", "a", "a.txt", "a", "z/x", "x", "run.sh", "#!", "ünï cöde?&#.md", "u")
		first.Changes = append(first.Changes, gittest.Change{Path: "link", Mode: "120000", Content: "a.txt"}, gittest.Change{Path: "sub", Mode: "160000", Content: strings.Repeat("1", 40)})
		at, r := newCode(t, s, alice, "code", first)
		second := writeFiles("later.txt", "later")
		second.Branch = "topic/one"
		second.Parents = []string{r.Tip("refs/heads/main")}
		r.Commit(second)
		r.Git("tag", "-m", "annotated", "v1", "main")
		treeID := r.Git("rev-parse", "main:dir")
		s.Table(t, []apptest.Call{
			{Name: "root", Do: "GET " + at + "/repository/tree", Status: 200, Want: `[
				{"id":"` + treeID + `","name":"dir","type":"tree","path":"dir","mode":"040000"},
				{"name":"z","type":"tree"},
				{"name":"a.txt","type":"blob","path":"a.txt","mode":"100644"}, {"name":"b.txt"}, {"name":"link","mode":"120000","type":"blob"},
				{"name":"run.sh"}, {"name":"sub","type":"commit","mode":"160000"}, {"name":"ünï cöde?&#.md"}]`,
				WantHeader: map[string]string{"Link": "-", "X-Page": "1", "X-Per-Page": "20", "X-Next-Page": "", "X-Prev-Page": "", "X-Total": "-"}},
			{Name: "a directory", Do: "GET " + at + "/repository/tree?path=dir", Status: 200, Want: `[{"path":"dir/in","type":"tree"},{"path":"dir/a.txt","name":"a.txt"}]`},
			{Name: "with slashes", Do: "GET " + at + "/repository/tree?path=/dir/in/", Status: 200, Want: `[{"path":"dir/in/deep.txt"}]`},
			{Name: "recursive", Do: "GET " + at + "/repository/tree?path=dir&recursive=true", Status: 200, Want: `[{"path":"dir/a.txt"},{"path":"dir/in"},{"path":"dir/in/deep.txt"}]`},
			{Name: "a branch", Do: "GET " + at + "/repository/tree?ref=topic%2Fone&path=&per_page=100", Status: 200, Want: `[{"name":"dir"},{"name":"z"},{"name":"a.txt"},{"name":"b.txt"},{"name":"later.txt"},{"name":"link"},{"name":"run.sh"},{"name":"sub"},{"name":"ünï cöde?&#.md"}]`},
			{Name: "a tag", Do: "GET " + at + "/repository/tree?ref=v1&path=z", Status: 200, Want: `[{"path":"z/x"}]`},
			{Name: "a commit", Do: "GET " + at + "/repository/tree?ref=" + r.Tip("refs/heads/main") + "&path=z", Status: 200, Want: `[{"path":"z/x"}]`},
			{Name: "keyset", Do: "GET " + at + "/repository/tree?pagination=keyset&per_page=100", Status: 200, WantHeader: map[string]string{"Link": "-", "X-Page": "-", "X-Next-Page": "-"}},
			{Name: "page", Do: "GET " + at + "/repository/tree?per_page=3&page=2", Status: 200, Want: `[{"name":"b.txt"},{"name":"link"},{"name":"run.sh"}]`,
				WantHeader: map[string]string{"X-Page": "2", "X-Next-Page": "3", "X-Prev-Page": "1"}},
			{Name: "last page", Do: "GET " + at + "/repository/tree?per_page=3&page=3", Status: 200, Want: `[{"name":"sub"},{"name":"ünï cöde?&#.md"}]`,
				WantHeader: map[string]string{"X-Next-Page": "", "Link": "-"}},
			{Name: "beyond", Do: "GET " + at + "/repository/tree?page=9", Status: 200, Want: `[]`},
			{Name: "after an id", Do: "GET " + at + "/repository/tree?per_page=1&pagination=keyset&page_token=" + treeID, Status: 200, Want: `[{"name":"z"}]`},
			{Name: "after an id, recursive", Do: "GET " + at + "/repository/tree?per_page=1&recursive=true&pagination=keyset&page_token=" + treeID, Status: 200, Want: `[{"path":"dir/a.txt"}]`},

			{Name: "unknown ref", Do: "GET " + at + "/repository/tree?ref=none", Status: 404, Want: `{"message":"404 Tree Not Found"}`},
			{Name: "unknown path", Do: "GET " + at + "/repository/tree?path=none", Status: 404, Want: `{"message":"404 invalid revision or path Not Found"}`},
			{Name: "a file", Do: "GET " + at + "/repository/tree?path=a.txt", Status: 404},
			{Name: "unknown id", Do: "GET " + at + "/repository/tree?page_token=" + strings.Repeat("0", 40), Status: 400},
			{Name: "bad token", Do: "GET " + at + "/repository/tree?page_token=pX!", Status: 400, Want: `{"error":"page_token is invalid"}`},
			{Name: "bad per_page", Do: "GET " + at + "/repository/tree?per_page=0", Status: 400, Want: `{"error":"per_page has a value not allowed"}`},
			{Name: "bad pagination", Do: "GET " + at + "/repository/tree?pagination=all", Status: 400, Want: `{"error":"pagination does not have a valid value"}`},
			{Name: "bad recursive", Do: "GET " + at + "/repository/tree?recursive=perhaps", Status: 400, Want: `{"error":"recursive is invalid"}`},
			{Name: "too deep a page", Do: "GET " + at + "/repository/tree?page=100000", Status: 405},
		})
		t.Run("by links", func(t *testing.T) {
			for _, query := range []string{"?per_page=2", "?per_page=1&recursive=true&pagination=keyset", "?per_page=3&page=1&recursive=true", "?per_page=4&path=dir&recursive=true&ref=main"} {
				var got []string
				want := readTree(t, s, at+"/repository/tree"+query)
				for next := at + "/repository/tree" + query; next != ""; {
					var entries []string
					entries, next = treePage(t, s, next)
					got = append(got, entries...)
				}
				if diff := cmp.Diff(want, got); diff != "" || len(want) < 3 {
					t.Errorf("%s: %s", query, diff)
				}
			}
		})
	})
}

var nextLink = regexp.MustCompile(`^<[^>]*/api/v4([^>]*)>; rel="next"$`)

// treePage returns the paths of a page and the path of the next page.
func treePage(t *testing.T, s *apptest.Server, path string) (paths []string, next string) {
	t.Helper()
	a := s.Check(t, apptest.Call{Do: "GET " + path, Status: 200})
	var list []struct{ Path string }
	a.JSON(t, &list)
	for _, e := range list {
		paths = append(paths, e.Path)
	}
	link := a.Header.Get("Link")
	if link == "" {
		return paths, ""
	}
	m := nextLink.FindStringSubmatch(link)
	if m == nil {
		t.Fatalf("Link: %s", link)
	}
	return paths, m[1]
}

func readTree(t *testing.T, s *apptest.Server, path string) []string {
	t.Helper()
	address, _ := url.Parse(path)
	query := address.Query()
	query["per_page"] = []string{"100"}
	paths, _ := treePage(t, s, address.Path+"?"+query.Encode())
	return paths
}

// TestEmptyRepository reads a project without commits.
func TestEmptyRepository(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		var made struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: `{"path":"empty"}`, Status: 201}).JSON(t, &made)
		for _, there := range []bool{false, true} { // the directory is created by the first push or fetch
			if there {
				s.Repository(t, made.ID)
			}
			at := fmt.Sprintf("/projects/%d", made.ID)
			s.Table(t, []apptest.Call{
				{Do: "GET " + at + "/repository/tree", As: alice, Status: 404, Want: `{"message":"404 Tree Not Found"}`},
				{Do: "GET " + at + "/repository/blobs/" + aBlob, As: alice, Status: 404, Want: `{"message":"404 Blob Not Found"}`},
				{Do: "GET " + at + "/repository/blobs/" + aBlob + "/raw", As: alice, Status: 404},
				{Do: "GET " + at + "/repository/archive", As: alice, Status: 404, Want: `{"message":"404 File Not Found"}`},
				{Do: "GET " + at + "/repository/compare?from=main&to=main", As: alice, Status: 404, Want: `{"message":"404 Ref Not Found"}`},
				{Do: "GET " + at + "/repository/contributors", As: alice, Status: 200, Want: `[]`},
				{Do: "GET " + at + "/repository/contributors?ref=main", As: alice, Status: 404},
				{Do: "GET " + at + "/repository/merge_base?refs[]=main&refs[]=x", As: alice, Status: 400, Want: `{"message":"Could not find refs: main, x"}`},
				{Do: "GET " + at + "/repository/changelog?version=1.0.0", As: alice, Status: 422},
				{Do: "POST " + at + "/repository/changelog", As: alice, JSON: `{"version":"1.0.0"}`, Status: 422},
				{Do: "GET " + at + "/languages", As: alice, Status: 200, Want: `{}`},
			})
		}
	})
}

func TestBlobs(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		large := strings.Repeat("0123456789abcdef\x00\xff", 200_000) // larger than what is read at once
		at, r := newCode(t, s, alice, "code", writeFiles("x", "x\n", "none", "", "large", large, "bin", "\x00\x01\xfe"))
		id := func(rev string) string { return r.Git("rev-parse", rev) }
		type blob struct {
			Size                   int64
			Encoding, Sha, Content string
		}
		for name, want := range map[string]string{"x": "x\n", "none": "", "large": large, "bin": "\x00\x01\xfe"} {
			path := at + "/repository/blobs/" + id("main:"+name)
			got := s.Check(t, apptest.Call{Do: "GET " + path, Status: 200, WantHeader: map[string]string{"Content-Type": "application/json"}})
			var b blob
			got.JSON(t, &b)
			text, err := base64.StdEncoding.DecodeString(b.Content)
			if err != nil || string(text) != want || b.Size != int64(len(want)) || b.Encoding != "base64" || b.Sha != id("main:"+name) {
				t.Errorf("%s: %d bytes, %v, %d %s %s", name, len(text), err, b.Size, b.Encoding, b.Sha)
			}
			if got.Header.Get("Content-Length") != strconv.Itoa(len(got.Body)) {
				t.Errorf("%s: Content-Length %s of %d", name, got.Header.Get("Content-Length"), len(got.Body))
			}
			s.Check(t, apptest.Call{Do: "GET " + path, Header: map[string]string{"If-None-Match": got.Header.Get("ETag")}, Status: 304})
			raw := s.Check(t, apptest.Call{Do: "GET " + path + "/raw", Status: 200, WantHeader: map[string]string{
				"Content-Type": "application/octet-stream", "X-Content-Type-Options": "nosniff", "Content-Disposition": "attachment; filename=" + b.Sha,
				"Content-Length": strconv.Itoa(len(want)), "ETag": `"` + b.Sha + `"`}})
			if string(raw.Body) != want {
				t.Errorf("%s raw: %d bytes", name, len(raw.Body))
			}
			head := s.Check(t, apptest.Call{Do: "HEAD " + path + "/raw", Status: 200, WantHeader: map[string]string{"Content-Length": strconv.Itoa(len(want))}})
			if len(head.Body) > 0 {
				t.Errorf("%s: HEAD has a body", name)
			}
			s.Check(t, apptest.Call{Do: "GET " + path + "/raw", Header: map[string]string{"If-None-Match": `"` + b.Sha + `"`}, Status: 304})
		}
		s.Table(t, []apptest.Call{
			{Name: "short id", Do: "GET " + at + "/repository/blobs/" + aBlob[:10], Status: 200, Want: `{"sha":"` + aBlob + `"}`},
			{Name: "unknown", Do: "GET " + at + "/repository/blobs/" + strings.Repeat("0", 40), Status: 404, Want: `{"message":"404 Blob Not Found"}`},
			{Name: "a commit", Do: "GET " + at + "/repository/blobs/" + id("main"), Status: 404, Want: `{"message":"404 Blob Not Found"}`},
			{Name: "a tree", Do: "GET " + at + "/repository/blobs/" + id("main^{tree}") + "/raw", Status: 404},
			{Name: "a branch", Do: "GET " + at + "/repository/blobs/main/raw", Status: 404},
			{Name: "no id", Do: "GET " + at + "/repository/blobs/--help", Status: 404},
		})
	})
}

// TestHostileRepositoryNames sends names that are options, contain .., or are not
// valid text. None may cause a server error.
func TestHostileRepositoryNames(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		at, _ := newCode(t, s, alice, "code", writeFiles("x", "x\n"))
		for _, name := range []string{
			"-", "--output=/tmp/x", "--upload-pack=x", "..", "../../../etc/passwd", "main..main", "main...main", "^main", "main^{/x}", "main@{1}", ":/x", "HEAD:x", "@{-1}",
			"refs/heads/../../x", "a\nb", "a b", "*", "[", "\\", "~", "main~999999999", ".git", ".git/config", strings.Repeat("a/", 2000), strings.Repeat("é", 600),
		} {
			q := url.QueryEscape(name)
			for _, path := range []string{
				"/repository/tree?ref=" + q, "/repository/tree?path=" + q, "/repository/tree?recursive=true&page_token=" + q,
				"/repository/archive.tar?sha=" + q, "/repository/archive.tar?path=" + q, "/repository/compare?from=" + q + "&to=main", "/repository/compare?to=" + q + "&from=main",
				"/repository/contributors?ref=" + q, "/repository/merge_base?refs[]=main&refs[]=" + q,
				"/repository/changelog?version=1.0.0&from=" + q, "/repository/changelog?version=1.0.0&from=main&to=" + q,
				"/repository/changelog?version=1.0.0&from=main&config_file_ref=" + q, "/repository/changelog?version=" + q,
			} {
				if len(path) > 8000 {
					continue
				}
				if got := s.Send(t, apptest.Call{Do: "GET " + at + path, As: alice}); got.Status != 400 && got.Status != 404 && got.Status != 422 {
					t.Errorf("%s: status %d: %.200s", path, got.Status, got.Body)
				}
			}
			// A configuration file that does not exist is ignored.
			s.Check(t, apptest.Call{Do: "GET " + at + "/repository/changelog?version=1.0.0&from=main&config_file=" + q, As: alice, Status: 200})
			if got := s.Send(t, apptest.Call{Do: "GET " + at + "/repository/blobs/" + url.PathEscape(name), As: alice}); got.Status != 404 && got.Status != 400 {
				t.Errorf("blob %q: status %d: %s", name, got.Status, got.Body)
			}
			if got := s.Send(t, apptest.Call{Do: "POST " + at + "/repository/changelog", As: alice, Form: url.Values{"version": {"1.0.0"}, "from": {"main"}, "branch": {name}}}); got.Status != 422 {
				t.Errorf("branch %.50q: status %d: %s", name, got.Status, got.Body)
			}
		}
		s.Table(t, []apptest.Call{
			{Name: "NUL", Do: "GET " + at + "/repository/tree?ref=a%00b", Status: 400, Want: `{"error":"ref is invalid"}`},
			{Name: "no UTF-8", Do: "GET " + at + "/repository/tree?path=%ff%fe", Status: 400, Want: `{"error":"path is invalid"}`},
			{Name: "blob with a slash", Do: "GET " + at + "/repository/blobs/a/b", Status: 404, Want: `{"error":"404 Not Found"}`},
			{Name: "blob with an encoded slash", Do: "GET " + at + "/repository/blobs/a%2Fb", Status: 404, Want: `{"message":"404 Blob Not Found"}`},
			{Name: "project with a slash", Do: "GET /projects/alice/code/repository/tree", Status: 404, Want: `{"error":"404 Not Found"}`},
			{Name: "project with an encoded slash", Do: "GET /projects/alice%2Fcode/repository/tree", Status: 200},
			{Name: "by a client that encodes dots", Do: "GET /projects/alice%2Fcode/repository/archive%2Etar", Status: 404},
		})
	})
}

func TestArchive(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		at, r := newCode(t, s, alice, "code", writeFiles("x", "x\n", "dir/y", "y\n", "dir/in/z", "z\n"))
		topic := writeFiles("t", "t\n")
		topic.Branch, topic.Parents = "topic/ä", []string{r.Tip("refs/heads/main")}
		r.Commit(topic)
		main, other := r.Tip("refs/heads/main"), r.Tip("refs/heads/topic/ä")
		for _, tt := range []struct {
			path, query, file, media string
			names                    []string
		}{
			{"archive", "", "code-main-" + main + ".tar.gz", "application/gzip", nil},
			{"archive.tar.gz", "", "code-main-" + main + ".tar.gz", "application/gzip", nil},
			{"archive.tar", "", "code-main-" + main + ".tar", "application/x-tar", nil},
			{"archive.zip", "", "code-main-" + main + ".zip", "application/zip", nil},
			{"archive.bz2", "", "code-main-" + main + ".bz2", "application/x-bzip2", nil},
			{"archive.tar.bz2", "", "code-main-" + main + ".tar.bz2", "application/x-bzip2", nil},
			{"archive.tbz", "", "code-main-" + main + ".tbz", "application/x-bzip2", nil},
			{"archive.tbz2", "", "code-main-" + main + ".tbz2", "application/x-bzip2", nil},
			{"archive.tb2", "", "code-main-" + main + ".tb2", "application/x-bzip2", nil},
			{"archive", "?format=zip", "code-main-" + main + ".zip", "application/zip", nil},
			{"archive.tar", "?sha=" + main, "code-" + main + "-" + main + ".tar", "application/x-tar", nil},
			{"archive.tar", "?sha=topic%2F%C3%A4", "code-topic-ä-" + other + ".tar", "application/x-tar", []string{"dir/in/z", "dir/y", "t", "x"}},
			{"archive.tar", "?path=dir", "code-main-" + main + "-dir.tar", "application/x-tar", []string{"dir/in/z", "dir/y"}},
			{"archive.zip", "?path=/dir/in/", "code-main-" + main + "-dir-in.zip", "application/zip", []string{"dir/in/z"}},
			{"archive.tar", "?path=x", "code-main-" + main + "-x.tar", "application/x-tar", []string{"x"}},
			{"archive.tar", "?path=", "code-main-" + main + ".tar", "application/x-tar", nil},
		} {
			t.Run(tt.path+tt.query, func(t *testing.T) {
				got := s.Check(t, apptest.Call{Do: "GET " + at + "/repository/" + tt.path + tt.query, Status: 200, WantHeader: map[string]string{
					"Content-Type": tt.media, "Content-Disposition": disposition(tt.file)}})
				if tt.names == nil {
					tt.names = []string{"dir/in/z", "dir/y", "x"}
				}
				prefix, _, _ := strings.Cut(tt.file, ".")
				names := archived(t, tt.media, got.Body)
				for i, name := range names {
					rest, ok := strings.CutPrefix(name, prefix+"/")
					if !ok {
						t.Errorf("%s is not in %s", name, prefix)
					}
					names[i] = rest
				}
				if diff := cmp.Diff(tt.names, names); diff != "" {
					t.Error(diff)
				}
				tag := got.Header.Get("ETag")
				if !strings.Contains(tag, main) && !strings.Contains(tag, other) {
					t.Errorf("ETag %q", tag)
				}
				again := apptest.Call{Do: "GET " + at + "/repository/" + tt.path + tt.query, Header: map[string]string{"If-None-Match": tag}, Status: 304}
				s.Check(t, again)
				head := s.Check(t, apptest.Call{Do: "HEAD " + at + "/repository/" + tt.path + tt.query, Status: 200, WantHeader: map[string]string{"ETag": tag, "Content-Disposition": disposition(tt.file)}})
				if len(head.Body) > 0 {
					t.Error("HEAD has a body")
				}
			})
		}
		s.Table(t, []apptest.Call{
			{Do: "GET " + at + "/repository/archive.rar", Status: 404},
			{Do: "GET " + at + "/repository/archive?format=rar", Status: 404},
			{Do: "GET " + at + "/repository/archive?sha=none", Status: 404, Want: `{"message":"404 File Not Found"}`},
			{Do: "GET " + at + "/repository/archive?path=none", Status: 404, Want: `{"message":"404 File Not Found"}`},
			{Do: "GET " + at + "/repository/archive.zip?sha=" + r.Git("rev-parse", "main:x"), Status: 404},
			{Do: "POST " + at + "/repository/archive", As: alice, Status: 405},
		})
		long := writeFiles("x", "x")
		long.Branch = strings.Repeat("long/", 60) + "name"
		r.Commit(long)
		got := s.Check(t, apptest.Call{Do: "GET " + at + "/repository/archive.tar?sha=" + url.QueryEscape(long.Branch), Status: 200})
		if want := disposition("code-" + r.Tip("refs/heads/"+long.Branch) + ".tar"); got.Header.Get("Content-Disposition") != want {
			t.Errorf("a long name: %s", got.Header.Get("Content-Disposition"))
		}
	})
}

func disposition(name string) string {
	if strings.Contains(name, "ä") {
		return "attachment; filename*=utf-8''" + strings.ReplaceAll(name, "ä", "%C3%A4")
	}
	return "attachment; filename=" + name
}

// archived lists the files of an archive.
func archived(t *testing.T, media string, body []byte) []string {
	t.Helper()
	var names []string
	var in io.Reader = bytes.NewReader(body)
	switch media {
	case "application/zip":
		z, err := zip.NewReader(bytes.NewReader(body), int64(len(body)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range z.File {
			if !strings.HasSuffix(f.Name, "/") {
				names = append(names, f.Name)
			}
		}
		slices.Sort(names)
		return names
	case "application/gzip":
		z, err := gzip.NewReader(in)
		if err != nil {
			t.Fatal(err)
		}
		in = z
	case "application/x-bzip2":
		in = bzip2.NewReader(in)
	}
	files := tar.NewReader(in)
	for {
		h, err := files.Next()
		if err == io.EOF {
			slices.Sort(names)
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			names = append(names, h.Name)
		}
	}
}

// TestArchiveRate exceeds the rate limit of archives.
func TestArchiveRate(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		at, _ := newCode(t, s, alice, "code", writeFiles("x", "x\n"))
		s.Clock.Stop()
		for _, path := range []string{"archive", "archive.zip", "archive.tar", "archive.tar.gz", "archive?path=x"} {
			s.Check(t, apptest.Call{Do: "GET " + at + "/repository/" + path, As: bob, Status: 200})
		}
		refused := s.Check(t, apptest.Call{Do: "GET " + at + "/repository/archive", As: bob, Status: 429, Want: `{"message":{"error":"<any>"}}`})
		if refused.Header.Get("Retry-After") == "" {
			t.Error("the response has no Retry-After header")
		}
		s.Check(t, apptest.Call{Do: "GET " + at + "/repository/archive", As: alice, Status: 200})
		s.Check(t, apptest.Call{Do: "GET " + at + "/repository/archive", Status: 200})
		s.Check(t, apptest.Call{Do: "GET " + at + "/repository/tree", As: bob, Status: 200})
		for n := range 6 { // a network has one limit
			status := 200
			if n == 5 {
				status = 429
			}
			from := map[string]string{"X-Forwarded-For": fmt.Sprintf("2001:db8::%d", n+1)}
			s.Check(t, apptest.Call{Do: "GET " + at + "/repository/archive", Header: from, Status: status})
		}
		s.Clock.Move(61e9)
		s.Check(t, apptest.Call{Do: "GET " + at + "/repository/archive", As: bob, Status: 200})
	}, apptest.Hosted, apptest.BehindProxy)
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		at, _ := newCode(t, s, alice, "code", writeFiles("x", "x\n"))
		for range 7 {
			s.Check(t, apptest.Call{Do: "GET " + at + "/repository/archive", As: alice, Status: 200})
		}
	})
}

// TestClientLeaves closes the connection during a large response, which must not be
// logged as an error.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		large := make([]byte, 24<<20)
		for i := range large {
			large[i] = byte(i * i >> 7)
		}
		at, r := newCode(t, s, alice, "code", writeFiles("large", string(large)))
		for _, path := range []string{"/repository/archive.tar", "/repository/blobs/" + r.Git("rev-parse", "main:large"), "/repository/blobs/" + r.Git("rev-parse", "main:large") + "/raw"} {
			res, err := http.Get(s.URL + "/api/v4" + at + path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(res.Body, make([]byte, 1<<20)); err != nil {
				t.Fatal(err)
			}
			if err := res.Body.Close(); err != nil {
				t.Fatal(err)
			}
		}
		s.Check(t, apptest.Call{Do: "GET " + at + "/repository/tree", Status: 200})
		waittest.For(t, "the git processes end", func() bool { return len(transfersIn(r.Path)) == 0 })
		if strings.Contains(s.Log(), `"level":"ERROR"`) {
			t.Error("a fault was logged")
		}
	})
}

// transfersIn returns the command lines of the git processes that send data of a
// repository.
func transfersIn(path string) []string {
	found, _ := filepath.Glob("/proc/[0-9]*/cwd")
	var list []string
	for _, link := range found {
		if dir, err := os.Readlink(link); err != nil || dir != path {
			continue // of another repository, or the process has ended
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline"))
		if bytes.Contains(line, []byte("\x00archive\x00")) || bytes.Contains(line, []byte("\x00blob\x00")) {
			list = append(list, string(line))
		}
	}
	return list
}

func TestContributors(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		by := func(who string, c gittest.Commit) gittest.Commit { c.Author = who; return c }
		at, r := newCode(t, s, alice, "code",
			by("Zoë <zoe@example.com>", writeFiles("a", "1\n2\n3\n")), by("Ben <ben@example.com>", writeFiles("a", "1\n3\n4\n5\n")),
			by("Ben <BEN@example.com>", writeFiles("b", "b\n")), by("adam <yak@example.com>", writeFiles("c", "c\nc\n")), by("adam <yak@example.com>", writeFiles("c", "")), by("adam <yak@example.com>", writeFiles("d", "d")))
		r.Git("branch", "old", "main~5")
		zoe := `{"name":"Zoë","email":"zoe@example.com","commits":1,"additions":3,"deletions":0}`
		ben := `{"name":"Ben","email":"BEN@example.com","commits":2,"additions":3,"deletions":1}`
		adam := `{"name":"adam","email":"yak@example.com","commits":3,"additions":3,"deletions":2}`
		list := func(items ...string) string { return "[" + strings.Join(items, ",") + "]" }
		s.Table(t, []apptest.Call{
			{Do: "GET " + at + "/repository/contributors", Status: 200, Want: list(zoe, ben, adam), WantHeader: map[string]string{"X-Total": "3"}},
			{Do: "GET " + at + "/repository/contributors?sort=desc", Status: 200, Want: list(adam, ben, zoe)},
			{Do: "GET " + at + "/repository/contributors?order_by=name", Status: 200, Want: list(adam, ben, zoe)},
			{Do: "GET " + at + "/repository/contributors?order_by=name&sort=desc", Status: 200, Want: list(zoe, ben, adam)},
			{Do: "GET " + at + "/repository/contributors?order_by=email", Status: 200, Want: list(ben, adam, zoe)},
			{Do: "GET " + at + "/repository/contributors?ref=old", Status: 200, Want: list(zoe)},
			{Do: "GET " + at + "/repository/contributors?per_page=1&page=2", Status: 200, Want: list(ben), WantHeader: map[string]string{"X-Next-Page": "3", "X-Total-Pages": "3"}},
			{Do: "GET " + at + "/repository/contributors?page=9", Status: 200, Want: `[]`},
			{Do: "GET " + at + "/repository/contributors?ref=none", Status: 404},
			{Do: "GET " + at + "/repository/contributors?order_by=age", Status: 400, Want: `{"error":"order_by does not have a valid value"}`},
			{Do: "GET " + at + "/repository/contributors?sort=up", Status: 400, Want: `{"error":"sort does not have a valid value"}`},
		})
	})
}

func TestMergeBase(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		first := writeFiles("a", "a")
		first.Message = "First\n\nWith a body.\n"
		at, r := newCode(t, s, alice, "code", first)
		base := r.Tip("refs/heads/main")
		for _, branch := range []string{"one", "two", "three"} {
			c := writeFiles(branch, branch)
			c.Branch, c.Parents = branch, []string{base}
			r.Commit(c)
		}
		lonely := writeFiles("b", "b")
		lonely.Branch, lonely.Root = "lonely", true
		r.Commit(lonely)
		want := `{"id":"` + base + `","short_id":"` + base[:8] + `","title":"First","message":"First\n\nWith a body.\n","parent_ids":[],"author_name":"Ann Author","author_email":"ann@example.com",
			"authored_date":"2023-11-15T00:13:20.000+02:00","created_at":"2023-11-14T22:13:20.000+00:00","committer_name":"Cole Committer","committer_email":"cole@example.com",
			"committed_date":"2023-11-14T22:13:20.000+00:00","web_url":"` + s.URL + `/alice/code/-/commit/` + base + `"}`
		s.Table(t, []apptest.Call{
			{Do: "GET " + at + "/repository/merge_base?refs[]=one&refs[]=two", Status: 200, Want: want},
			{Do: "GET " + at + "/repository/merge_base?refs=one,two,three", Status: 200, Want: want},
			{Do: "GET " + at + "/repository/merge_base?refs[]=one&refs[]=" + base, Status: 200, Want: want},
			{Do: "GET " + at + "/repository/merge_base?refs[]=main&refs[]=main", Status: 200, Want: want},
			{Do: "GET " + at + "/repository/merge_base", Status: 400, Want: `{"error":"refs is missing"}`},
			{Do: "GET " + at + "/repository/merge_base?refs[]=main", Status: 400, Want: `{"message":"Provide at least 2 refs"}`},
			{Do: "GET " + at + "/repository/merge_base?refs[]=main&refs[]=none", Status: 400, Want: `{"message":"Could not find ref: none"}`},
			{Do: "GET " + at + "/repository/merge_base?refs[]=main&refs[]=lonely", Status: 404, Want: `{"message":"404 Merge Base Not Found"}`},
		})
	})
}
