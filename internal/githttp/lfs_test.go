package githttp_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/blob/blobtest"
	"svc/internal/db/dbtest"
	"svc/internal/lfs"
	"svc/internal/project"
)

const lfsMedia = "application/vnd.git-lfs+json"

// lfsClient is a client of the LFS API of a project.
type lfsClient struct {
	*apptest.Server
	project, login, password string
}

func (c lfsClient) ask(method, path string, body any) ask {
	a := ask{name: method + " " + path, login: c.login, password: c.password, method: method, path: "/" + c.project + ".git/info/lfs/" + path}
	switch b := body.(type) {
	case nil:
	case []byte:
		a.body = b
	case string:
		a.body, a.header = []byte(b), map[string]string{"Content-Type": lfsMedia, "Accept": lfsMedia}
	}
	return a
}

// want sends a request and checks the status and a part of the body.
func (c lfsClient) want(t *testing.T, status int, text, method, path string, body any) apptest.Answer {
	t.Helper()
	got := c.ask(method, path, body).send(t, c.Server)
	if got.Status != status || !strings.Contains(string(got.Body), text) {
		t.Errorf("%s %s of %s as %q: %d %s, want %d %s", method, path, c.project, c.login, got.Status, got.Body, status, text)
	}
	return got
}

func oidOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

type lfsBatch struct {
	Transfer string
	Objects  []struct {
		OID     string
		Size    int64
		Actions map[string]struct {
			Href   string
			Header map[string]string
		}
		Error *struct {
			Code    int
			Message string
		}
	}
}

func (c lfsClient) batch(t *testing.T, op string, contents ...string) lfsBatch {
	t.Helper()
	var objects []string
	for _, content := range contents {
		objects = append(objects, fmt.Sprintf(`{"oid":%q,"size":%d}`, oidOf(content), len(content)))
	}
	got := c.want(t, 200, `"transfer":"basic"`, "POST", "objects/batch",
		fmt.Sprintf(`{"operation":%q,"transfers":["basic"],"ref":{"name":"refs/heads/main"},"hash_algo":"sha256","objects":[%s]}`, op, strings.Join(objects, ",")))
	if media := got.Header.Get("Content-Type"); media != lfsMedia {
		t.Errorf("batch has the type %q", media)
	}
	var b lfsBatch
	if err := json.Unmarshal(got.Body, &b); err != nil || len(b.Objects) != len(contents) {
		t.Fatalf("batch: %v %s", err, got.Body)
	}
	return b
}

// follow performs an action of a batch response.
func (c lfsClient) follow(t *testing.T, b lfsBatch, action, method string, body []byte) apptest.Answer {
	t.Helper()
	a, ok := b.Objects[0].Actions[action]
	if !ok {
		t.Fatalf("no action %s: %+v", action, b)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, a.Href, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range a.Header {
		r.Header.Set(name, value)
	}
	if action == "verify" {
		r.Header.Set("Content-Type", lfsMedia)
	}
	return c.Exchange(t, r)
}

// upload uploads an object like an LFS client.
func (c lfsClient) upload(t *testing.T, content string) {
	t.Helper()
	b := c.batch(t, "upload", content)
	if got := c.follow(t, b, "upload", "PUT", []byte(content)); got.Status != 200 {
		t.Fatalf("upload: %d %s", got.Status, got.Body)
	}
	if got := c.follow(t, b, "verify", "POST", fmt.Appendf(nil, `{"oid":%q,"size":%d}`, oidOf(content), len(content))); got.Status != 200 {
		t.Fatalf("verify: %d %s", got.Status, got.Body)
	}
}

// holds reports whether the client can download an object from a project.
func (c lfsClient) holds(t *testing.T, content string) bool {
	t.Helper()
	b := c.batch(t, "download", content)
	if e := b.Objects[0].Error; e != nil {
		if e.Code != 404 {
			t.Errorf("download: %+v", e)
		}
		return false
	}
	got := c.follow(t, b, "download", "GET", nil)
	if got.Status != 200 || string(got.Body) != content {
		t.Errorf("download: %d %.100q", got.Status, got.Body)
	}
	return true
}

// TestLFS transfers objects with valid and invalid requests.
func TestLFS(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, olga := s.User(t, "olga")
		otherID, otto := s.User(t, "otto")
		newProject(t, s, olga, "p", "private")
		newProject(t, s, otto, "q", "public")
		c := lfsClient{s, "olga/p", "olga", olga}
		other := lfsClient{s, "otto/q", "otto", otto}
		const content = "a large file"
		oid, at := oidOf(content), fmt.Sprintf("objects/%s/%d", oidOf(content), len(content))

		// Content with another digest or size is not stored.
		c.want(t, 422, "SHA-256 digest of the object", "PUT", at, []byte("a large fill"))
		c.want(t, 422, "bytes", "PUT", at, []byte("short"))
		c.want(t, 422, "bytes", "PUT", at, []byte("a large file that is longer"))
		c.want(t, 422, "invalid", "PUT", "objects/"+oid+"/-1", []byte("x"))
		c.want(t, 422, "invalid", "PUT", "objects/"+strings.ToUpper(oid)+"/12", []byte(content))
		c.want(t, 404, "Not found", "PUT", "objects/..%2f..%2fetc/12", []byte(content))
		c.want(t, 422, "invalid", "PUT", "objects/../12", []byte(content))
		half := httptest.NewRequest("PUT", s.URL+"/olga/p.git/info/lfs/"+at, io.MultiReader(strings.NewReader("a lar"), brokenReader{}))
		half.RequestURI, half.ContentLength = "", int64(len(content))
		half.SetBasicAuth("olga", olga)
		if answer, err := http.DefaultClient.Do(half.WithContext(t.Context())); err == nil {
			_ = answer.Body.Close()
			t.Errorf("half an object: %d", answer.StatusCode)
		}
		if c.holds(t, content) {
			t.Error("the project has the object before it was uploaded")
		}
		c.want(t, 404, "does not exist", "POST", "objects/verify", fmt.Sprintf(`{"oid":%q,"size":12}`, oid))
		for info, err := range s.Blobs.List(t.Context(), "lfs/") {
			t.Errorf("left over: %s %v", info.Key, err)
		}

		c.upload(t, content)
		if !c.holds(t, content) {
			t.Error("the object is not there")
		}
		if b := c.batch(t, "upload", content); len(b.Objects[0].Actions) > 0 {
			t.Errorf("an object that the project has is uploaded again: %+v", b)
		}
		c.want(t, 422, "size", "POST", "objects/verify", fmt.Sprintf(`{"oid":%q,"size":13}`, oid))
		ask{login: "olga", password: olga, path: "/olga/p.git/info/lfs/objects/" + oid, header: map[string]string{"Range": "bytes=2-6"}, status: 206, text: "large"}.check(t, s)

		// The digest alone does not give access to an object in another project;
		// uploading the content does.
		if other.holds(t, content) {
			t.Error("another project has the object")
		}
		other.want(t, 404, "does not exist", "GET", "objects/"+oid, nil)
		other.want(t, 422, "SHA-256 digest of the object", "PUT", at, []byte("a large fill"))
		if other.holds(t, content) {
			t.Error("another project has the object without its content")
		}
		other.upload(t, content)
		if !other.holds(t, content) {
			t.Error("the object is not there")
		}
		keys := 0
		for range s.Blobs.List(t.Context(), "lfs/") {
			keys++
		}
		if keys != 1 {
			t.Errorf("the content is stored %d times", keys)
		}

		// Invalid requests.
		for body, want := range map[string]struct {
			status int
			text   string
		}{
			`{"operation":"delete","objects":[]}`:                                                        {422, "operation"},
			`{"operation":"download","hash_algo":"sha512","objects":[]}`:                                 {409, "sha256"},
			`{"operation":"download","objects":[{"oid":"x","size":1}]}`:                                  {200, `"code":422`},
			`{"operation":"upload","objects":[{"oid":"` + oid + `","size":-1}]}`:                         {200, `"code":422`},
			`{"operation":"upload","objects":[{"oid":"` + oid + `","size":3}]}`:                          {200, `"code":422`},
			`{"operation":"upload","objects":"x"}`:                                                       {422, "JSON"},
			`[`:                                                                                          {422, "JSON"},
			`{"operation":"download","objects":[` + strings.Repeat(`{},`, lfs.MaxBatch) + `{}]}`:         {413, "1000"},
			`{"operation":"download","objects":[], "ref":{"name":"` + strings.Repeat("x", 1<<20) + `"}}`: {413, "large"},
		} {
			c.want(t, want.status, want.text, "POST", "objects/batch", body)
		}
		c.want(t, 422, "Content-Type", "POST", "objects/batch", []byte("{}"))
		c.want(t, 404, `"message":"Not found."`, "GET", "nothing", nil)

		// Permissions.
		anonymous, guest := lfsClient{s, "otto/q", "", ""}, lfsClient{s, "olga/p", "otto", otto}
		if !anonymous.holds(t, content) {
			t.Error("a public project refuses a download")
		}
		got := lfsClient{s, "olga/p", "", ""}.want(t, 401, "message", "POST", "objects/batch", `{"operation":"download","objects":[]}`)
		if got.Header.Get("LFS-Authenticate") == "" || got.Header.Get("Content-Type") != lfsMedia {
			t.Errorf("401: %v", got.Header)
		}
		anonymous.want(t, 401, "message", "POST", "objects/batch", `{"operation":"upload","objects":[]}`)
		anonymous.want(t, 401, "message", "PUT", at, []byte(content))
		guest.want(t, 404, "message", "POST", "objects/batch", `{"operation":"download","objects":[]}`)
		s.Check(t, apptest.Call{Do: "POST /projects/olga%2Fp/members", As: olga, Status: 201, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":20}`, otherID)})
		guest.want(t, 200, "basic", "POST", "objects/batch", `{"operation":"download","objects":[]}`)
		guest.want(t, 403, "not allowed to push", "POST", "objects/batch", `{"operation":"upload","objects":[]}`)
		guest.want(t, 403, "", "PUT", at, []byte(content))
		byPassword := lfsClient{s, "olga/p", "olga", password}
		byPassword.upload(t, "by password")
		if b := byPassword.batch(t, "download", content); strings.Contains(b.Objects[0].Actions["download"].Header["Authorization"], "password") || !byPassword.holds(t, content) {
			t.Errorf("by password: %+v", b)
		}
		id, err := s.Users.Find(t.Context(), actor.System(), "olga")
		if err != nil {
			t.Fatal(err)
		}
		reader := lfsClient{s, "olga/p", "olga", s.Token(t, id.ID, "read_repository")}
		if !reader.holds(t, content) {
			t.Error("read_repository does not download")
		}
		reader.want(t, 403, "", "POST", "objects/batch", `{"operation":"upload","objects":[]}`)
		deploy := s.Check(t, apptest.Call{Do: "POST /projects/olga%2Fp/deploy_tokens", As: olga, Status: 201, JSON: `{"name":"d","scopes":["read_repository"]}`})
		var made struct{ Username, Token string }
		deploy.JSON(t, &made)
		byDeploy := lfsClient{s, "olga/p", made.Username, made.Token}
		if !byDeploy.holds(t, content) {
			t.Error("a deploy token does not download")
		}
		byDeploy.want(t, 403, "", "POST", "objects/batch", `{"operation":"upload","objects":[]}`)

		// Tokens of another operation or project, and expired ones.
		p, err := s.Projects.Require(t.Context(), actor.System(), "olga/p", project.NoAccess)
		if err != nil {
			t.Fatal(err)
		}
		read := lfsClient{s, "olga/p", "olga", s.LFS.NewToken(lfs.Grant{UserID: id.ID}, p, lfs.Download)}
		if !read.holds(t, content) {
			t.Error("a token does not download")
		}
		read.want(t, 403, "token", "POST", "objects/batch", `{"operation":"upload","objects":[]}`)
		read.project = "otto/q"
		read.want(t, 403, "token", "POST", "objects/batch", `{"operation":"download","objects":[]}`)
		ask{login: "olga", password: read.password, path: refs("olga/p", "git-upload-pack"), status: 401}.check(t, s)
		read.project, read.login = "olga/p", "otto"
		read.want(t, 401, "", "POST", "objects/batch", `{"operation":"download","objects":[]}`)
		read.login = "olga"
		s.Clock.Move(time.Hour)
		read.want(t, 401, "expired", "POST", "objects/batch", `{"operation":"download","objects":[]}`)
		read.password = "lfs-e30.AAAA"
		read.want(t, 401, "wrong", "POST", "objects/batch", `{"operation":"download","objects":[]}`)

		// Limits and settings.
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200, JSON: `{"max_lfs_object_size":1}`})
		big := strings.Repeat("x", 1<<20+1)
		if b := c.batch(t, "upload", big); b.Objects[0].Error == nil || !strings.Contains(b.Objects[0].Error.Message, "1 MB") {
			t.Errorf("over the limit: %+v", b)
		}
		c.want(t, 413, "1 MB", "PUT", fmt.Sprintf("objects/%s/%d", oidOf(big), len(big)), []byte(big))
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200, JSON: `{"max_lfs_object_size":0,"repository_size_limit":1}`})
		if b := c.batch(t, "upload", big); b.Objects[0].Error == nil || !strings.Contains(b.Objects[0].Error.Message, "size limit of 1 MB by 1 MB") {
			t.Errorf("over the quota: %+v", b)
		}
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200, JSON: `{"repository_size_limit":0,"lfs_enabled":false}`})
		c.want(t, 501, "not enabled", "POST", "objects/batch", `{"operation":"download","objects":[]}`)
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200, JSON: `{"lfs_enabled":true}`})
		s.Check(t, apptest.Call{Do: "GET /projects/olga%2Fp?statistics=true", As: olga, Status: 200,
			Want: fmt.Sprintf(`{"lfs_enabled":true,"statistics":{"lfs_objects_size":%d}}`, len(content)+len("by password"))})
		s.Check(t, apptest.Call{Do: "PUT /projects/olga%2Fp", As: olga, Status: 200, JSON: `{"path":"here"}`})
		moved := c.ask("POST", "objects/batch", `{"operation":"download","objects":[]}`).send(t, s)
		if moved.Status != 307 || moved.Header.Get("Location") != "/olga/here.git/info/lfs/objects/batch" {
			t.Errorf("moved: %d %v %s", moved.Status, moved.Header, moved.Body)
		}
		c.project = "olga/here"
		s.Check(t, apptest.Call{Do: "POST /projects/olga%2Fhere/archive", As: olga, Status: 201})
		c.want(t, 403, "archived", "POST", "objects/batch", `{"operation":"upload","objects":[]}`)
		if !c.holds(t, content) {
			t.Error("an archived project refuses a download")
		}
		s.Check(t, apptest.Call{Do: "POST /projects/olga%2Fhere/unarchive", As: olga, Status: 201})
		s.Check(t, apptest.Call{Do: "PUT /projects/olga%2Fhere", As: olga, Status: 200, JSON: `{"lfs_enabled":false}`, Want: `{"lfs_enabled":false}`})
		c.want(t, 404, "not enabled for this project", "POST", "objects/batch", `{"operation":"download","objects":[]}`)
	})
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestLFSLocks locks files like LFS clients.
func TestLFSLocks(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, olga := s.User(t, "olga")
		devID, dev := s.User(t, "dev")
		readID, read := s.User(t, "reporter")
		newProject(t, s, olga, "p", "private")
		for id, level := range map[int64]int{devID: 30, readID: 20} {
			s.Check(t, apptest.Call{Do: "POST /projects/olga%2Fp/members", As: olga, Status: 201, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":%d}`, id, level)})
		}
		owner, c, reader := lfsClient{s, "olga/p", "olga", olga}, lfsClient{s, "olga/p", "dev", dev}, lfsClient{s, "olga/p", "reporter", read}
		c.want(t, 201, `"path":"a/b.bin","locked_at":"`, "POST", "locks", `{"path":"a/b.bin","ref":{"name":"refs/heads/main"}}`)
		owner.want(t, 409, `"message":"already created lock"`, "POST", "locks", `{"path":"a/b.bin"}`)
		owner.want(t, 201, `"id":"2"`, "POST", "locks", `{"path":"README.md"}`)
		random := strings.Builder{} // long texts that cannot be compressed do not fit into an index
		for i := 0; random.Len() < 3000; i++ {
			random.WriteString(oidOf(fmt.Sprint(i)))
		}
		for _, path := range []string{"", "/a", "../a", "a/../b", "a//b", "a\\u0000", ".", strings.Repeat("a", 5000), random.String()} {
			c.want(t, 422, "path", "POST", "locks", `{"path":"`+path+`"}`)
		}
		c.want(t, 201, "", "POST", "locks", `{"path":"`+random.String()[:2000]+`"}`)
		c.want(t, 200, "", "POST", "locks/3/unlock", `{}`)
		reader.want(t, 403, "not allowed to push", "POST", "locks", `{"path":"c"}`)
		reader.want(t, 403, "", "POST", "locks/verify", `{}`)
		reader.want(t, 200, `{"locks":[{"id":"1",`, "GET", "locks", nil)
		reader.want(t, 200, `"name":"olga"}}]}`, "GET", "locks?path=README.md", nil)
		reader.want(t, 200, `{"locks":[]}`, "GET", "locks?path=none", nil)
		reader.want(t, 200, `{"locks":[]}`, "GET", "locks?id=x", nil)
		reader.want(t, 200, `{"locks":[{"id":"2"`, "GET", "locks?id=2", nil)
		reader.want(t, 200, `"next_cursor":"2"`, "GET", "locks?limit=1", nil)
		reader.want(t, 200, `{"locks":[{"id":"2"`, "GET", "locks?limit=1&cursor=2", nil)
		reader.want(t, 422, "cursor", "GET", "locks?cursor=x", nil)
		c.want(t, 200, `{"ours":[{"id":"1"`, "POST", "locks/verify", `{"ref":{"name":"refs/heads/main"}}`)
		c.want(t, 200, `"theirs":[{"id":"2"`, "POST", "locks/verify", `{}`)

		// A push that changes a file locked by another user is refused.
		file := "PUT /projects/olga%2Fp/repository/files/README.md"
		s.Check(t, apptest.Call{Do: "POST /projects/olga%2Fp/protected_branches", As: olga, Status: 409, JSON: `{"name":"main"}`})
		s.Check(t, apptest.Call{Do: file, As: dev, Status: 403, JSON: `{"branch":"mine","start_branch":"main","commit_message":"m","content":"x"}`,
			Want: `{"message":"403 Forbidden - The path 'README.md' is locked in Git LFS by olga"}`})
		s.Check(t, apptest.Call{Do: file, As: olga, Status: 200, JSON: `{"branch":"main","commit_message":"m","content":"x"}`})

		c.want(t, 403, "force", "POST", "locks/2/unlock", `{}`)
		c.want(t, 403, "Maintainer", "POST", "locks/2/unlock", `{"force":true}`)
		c.want(t, 404, "", "POST", "locks/99/unlock", `{}`)
		c.want(t, 404, "", "POST", "locks/x/unlock", `{}`)
		owner.want(t, 403, "force", "POST", "locks/1/unlock", `{}`)
		owner.want(t, 200, `{"lock":{"id":"1"`, "POST", "locks/1/unlock", `{"force":true}`)
		owner.want(t, 200, `{"lock":{"id":"2"`, "POST", "locks/2/unlock", `{}`)
		reader.want(t, 200, `{"locks":[]}`, "GET", "locks", nil)
	})
}

// TestLFSDirect transfers objects directly to and from S3.
func TestLFSDirect(t *testing.T) {
	t.Parallel()
	address := blobtest.S3(t)
	s := apptest.Start(t, dbtest.SQLite(t), apptest.Bucket(address))
	_, olga := s.User(t, "olga")
	newProject(t, s, olga, "p", "private")
	c := lfsClient{s, "olga/p", "olga", olga}
	const content = "a large file"
	b := c.batch(t, "upload", content)
	if href := b.Objects[0].Actions["upload"].Href; strings.HasPrefix(href, s.URL) {
		t.Fatalf("the upload goes through the server: %s", href)
	}
	verify := fmt.Appendf(nil, `{"oid":%q,"size":%d}`, oidOf(content), len(content))
	if got := c.follow(t, b, "verify", "POST", verify); got.Status != 404 {
		t.Errorf("verify before the upload: %d %s", got.Status, got.Body)
	}
	if got := c.follow(t, b, "upload", "PUT", []byte(content+" that is longer")); got.Status < 400 {
		t.Errorf("another size: %d", got.Status)
	}
	if got := c.follow(t, b, "upload", "PUT", []byte("a large fill")); got.Status != 200 {
		t.Fatalf("upload: %d %s", got.Status, got.Body)
	}
	if got := c.follow(t, b, "verify", "POST", verify); got.Status != 422 {
		t.Errorf("verify of other content: %d %s", got.Status, got.Body)
	}
	if c.holds(t, content) {
		t.Error("the project has content that was not checked")
	}
	b = c.batch(t, "upload", content)
	if got := c.follow(t, b, "upload", "PUT", []byte(content)); got.Status != 200 {
		t.Fatalf("upload: %d %s", got.Status, got.Body)
	}
	if c.holds(t, content) {
		t.Error("the project has content that was not verified")
	}
	if got := c.follow(t, b, "verify", "POST", verify); got.Status != 200 {
		t.Fatalf("verify: %d %s", got.Status, got.Body)
	}
	// The upload URL is still valid. Content that is uploaded to it now does not
	// become the object.
	c.follow(t, b, "upload", "PUT", []byte("a large fill"))
	download := c.batch(t, "download", content)
	if href := download.Objects[0].Actions["download"].Href; strings.HasPrefix(href, s.URL) || !c.holds(t, content) {
		t.Errorf("download from %s", href)
	}
	// The size limit counts objects when they are uploaded: several uploads can be
	// started at the same time.
	first, second := strings.Repeat("1", 700<<10), strings.Repeat("2", 700<<10)
	begun := []lfsBatch{c.batch(t, "upload", first), c.batch(t, "upload", second)}
	s.Clock.Move(time.Minute)
	s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200, JSON: `{"repository_size_limit":1}`})
	for i, content := range []string{first, second} {
		if got := c.follow(t, begun[i], "upload", "PUT", []byte(content)); got.Status != 200 {
			t.Fatalf("upload: %d %s", got.Status, got.Body)
		}
		verify := fmt.Appendf(nil, `{"oid":%q,"size":%d}`, oidOf(content), len(content))
		if got := c.follow(t, begun[i], "verify", "POST", verify); got.Status != []int{200, 413}[i] {
			t.Errorf("verify of object %d: %d %s", i, got.Status, got.Body)
		}
	}
	if c.holds(t, second) {
		t.Error("the project has an object over its limit")
	}
	// The second counts until its upload has expired and is swept.
	if refused := c.batch(t, "upload", strings.Repeat("5", 200<<10)).Objects[0].Error != nil; !refused {
		t.Error("an upload over the limit was accepted")
	}
	sweep := func() {
		t.Helper()
		if err := s.LFS.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Settled(t)
	}
	s.Clock.Move(time.Hour)
	sweep()
	third, fourth := strings.Repeat("3", 200<<10), strings.Repeat("4", 200<<10)
	for i, content := range []string{third, fourth, third} { // an object that is uploaded again counts once
		if refused := c.batch(t, "upload", content).Objects[0].Error != nil; refused != (i == 1) {
			t.Errorf("upload %d is refused: %t", i, refused)
		}
	}
	// An abandoned upload counts as long as its content is stored, and once if it begins
	// again.
	b = c.batch(t, "upload", third)
	if got := c.follow(t, b, "upload", "PUT", []byte(third)); got.Status != 200 {
		t.Fatalf("upload: %d %s", got.Status, got.Body)
	}
	for i, after := range []time.Duration{time.Hour, 4 * time.Hour, 4 * time.Hour, 4 * time.Hour} {
		s.Clock.Move(after)
		sweep()
		if refused := c.batch(t, "upload", fourth).Objects[0].Error != nil; refused != (i < 3) {
			t.Errorf("upload %d is refused: %t", i, refused)
		}
		stored := 0
		for range s.Blobs.List(t.Context(), "lfs/incoming/") {
			stored++
		}
		if (stored > 0) != (i < 3) {
			t.Errorf("%d contents are stored", stored)
		}
		if i == 1 && c.batch(t, "upload", third).Objects[0].Error != nil {
			t.Error("the upload cannot begin again")
		}
	}
	c.want(t, 200, "has exceeded its size limit", "POST", "objects/batch", fmt.Sprintf(`{"operation":"upload","objects":[{"oid":%q,"size":9223372036854775807}]}`, oidOf("x")))
	s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200, JSON: `{"repository_size_limit":0}`})
	s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200, JSON: `{"lfs_direct_transfer":false}`})
	c.upload(t, "through the server")
	if href := c.batch(t, "download", content).Objects[0].Actions["download"].Href; !strings.HasPrefix(href, s.URL) || !c.holds(t, content) || !c.holds(t, "through the server") {
		t.Errorf("download from %s", href)
	}
	// Abandoned uploads are removed.
	s.Clock.Move(25 * time.Hour)
	sweep()
	for info := range s.Blobs.List(t.Context(), "lfs/incoming/") {
		t.Errorf("left over: %s", info.Key)
	}
}
