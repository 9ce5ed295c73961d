package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"svc/internal/git/gittest"
)

// TestMain lets the test binary replace the ssh program: it connects git with the server of
// the test that started it.
func TestMain(m *testing.M) {
	if socket := os.Getenv("GIT_TEST_SOCKET"); socket != "" {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		service, _, _ := strings.Cut(os.Args[len(os.Args)-1], " ")
		fmt.Fprintf(conn, "%s %s\n", service, os.Getenv("GIT_PROTOCOL"))
		go func() {
			_, _ = io.Copy(conn, os.Stdin)
			_ = conn.(*net.UnixConn).CloseWrite()
		}()
		_, _ = io.Copy(os.Stdout, conn)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// server serves one repository over HTTP and over a bidirectional connection.
type server struct {
	t    testing.TB
	repo Repo
	bare *gittest.Repo
	url  string
	env  []string

	mu     sync.Mutex
	o      PushOptions
	pushes []*Push
	errs   []error
}

func serve(t testing.TB, o PushOptions) *server {
	t.Helper()
	g := gittest.New(t)
	e, err := New(Deps{Spool: filepath.Join(t.TempDir(), "spool")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	r := e.Repo(g.Path)
	s := &server{t: t, repo: r, bare: g, o: o}
	web := httptest.NewServer(http.HandlerFunc(s.http))
	t.Cleanup(web.Close)
	s.url = web.URL + "/repo.git"
	dir, err := os.MkdirTemp("", "gs") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go s.converse(conn)
		}
	}()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s.env = []string{"GIT_SSH_COMMAND=" + self, "GIT_SSH_VARIANT=ssh", "GIT_TEST_SOCKET=" + filepath.Join(dir, "s")}
	return s
}

func (s *server) http(w http.ResponseWriter, q *http.Request) {
	o := s.options()
	o.Stateless, o.Protocol = true, q.Header.Get("Git-Protocol")
	var err error
	switch q.URL.Path + "?" + q.URL.RawQuery {
	case "/repo.git/info/refs?service=git-upload-pack":
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		err = s.repo.AdvertiseUpload(q.Context(), w, o.ServeOptions)
	case "/repo.git/info/refs?service=git-receive-pack":
		w.Header().Set("Content-Type", "application/x-git-receive-pack-advertisement")
		err = s.repo.AdvertiseReceive(q.Context(), w, o)
	case "/repo.git/git-upload-pack?":
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		err = s.repo.UploadPack(q.Context(), unzip(q), w, o.ServeOptions)
	case "/repo.git/git-receive-pack?":
		w.Header().Set("Content-Type", "application/x-git-receive-pack-result")
		var push *Push
		push, err = s.repo.ReceivePack(q.Context(), unzip(q), w, o)
		s.record(push)
	default:
		http.NotFound(w, q)
	}
	s.failed(err)
}

func (s *server) converse(conn net.Conn) {
	defer conn.Close()
	var line []byte
	for b := make([]byte, 1); ; line = append(line, b[0]) {
		if _, err := conn.Read(b); err != nil || b[0] == '\n' {
			break
		}
	}
	service, protocol, _ := strings.Cut(string(line), " ")
	o := s.options()
	o.Protocol = protocol
	if service == "git-upload-archive" {
		s.failed(s.repo.UploadArchive(context.Background(), conn, conn))
		return
	}
	if service == "git-upload-pack" {
		s.failed(s.repo.UploadPack(context.Background(), conn, conn, o.ServeOptions))
		return
	}
	push, err := s.repo.ReceivePack(context.Background(), conn, conn, o)
	s.record(push)
	s.failed(err)
}

func (s *server) options() PushOptions {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.o
}

func (s *server) record(p *Push) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p != nil {
		s.pushes = append(s.pushes, p)
	}
}

func (s *server) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.errs = append(s.errs, err)
	}
}

// faults returns the errors of the server since the last call.
func (s *server) faults() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := errors.Join(s.errs...)
	s.errs = nil
	return err
}

// git runs git as a client and returns its output.
func (s *server) git(dir string, args ...string) (string, error) {
	cmd := gittest.Command(dir, args...)
	cmd.Env = append(cmd.Env, s.env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (s *server) must(dir string, args ...string) string {
	s.t.Helper()
	out, err := s.git(dir, args...)
	if err != nil {
		s.t.Fatalf("git %v: %v\n%s\nserver: %v", args, err, out, s.faults())
	}
	return out
}

// urls returns the URLs of the repository for both protocols.
func (s *server) urls() map[string]string {
	return map[string]string{"http": s.url, "ssh": "ssh://host/repo.git"}
}

// work creates a clone to commit in.
func (s *server) work(name string) string {
	s.t.Helper()
	dir := filepath.Join(s.t.TempDir(), name)
	s.must("", "clone", "-q", s.url, dir)
	return dir
}

func (s *server) commit(dir, path, content string) string {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(dir, path), []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.must(dir, "add", path)
	s.must(dir, "commit", "-q", "-m", "change "+path)
	return strings.TrimSpace(s.must(dir, "rev-parse", "HEAD"))
}

func (s *server) clean() {
	s.t.Helper()
	left, err := filepath.Glob(filepath.Join(s.bare.Path, "objects", "tmp_*"))
	if err != nil || len(left) > 0 {
		s.t.Errorf("left behind: %v %v", left, err)
	}
	s.bare.Git("fsck", "--strict", "--no-dangling")
	if n := s.repo.engine.transfers.Held() + s.repo.engine.commands.Held(); n != 0 {
		s.t.Errorf("%d processes are left", n)
	}
}

func TestUploadPack(t *testing.T) {
	t.Parallel()
	s := serve(t, PushOptions{ServeOptions: ServeOptions{Hide: []string{"refs/internal/"}}})
	s.bare.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "a", Content: "1"}}})
	tip := s.bare.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "b", Content: strings.Repeat("big", 5000)}}})
	s.bare.Git("update-ref", "refs/internal/x", tip)
	for way, url := range s.urls() {
		for _, version := range []string{"0", "1", "2"} {
			c := func(args ...string) []string { return append([]string{"-c", "protocol.version=" + version}, args...) }
			name := way + " version " + version
			full := filepath.Join(t.TempDir(), "full")
			s.must("", c("clone", "-q", url, full)...)
			if got := s.must(full, "rev-list", "--count", "HEAD"); got != "2\n" {
				t.Errorf("%s: %s commits", name, got)
			}
			if refs := s.must(full, c("ls-remote", url)...); strings.Contains(refs, "internal") || !strings.Contains(refs, "refs/heads/main") {
				t.Errorf("%s: %s", name, refs)
			}
			shallow := filepath.Join(t.TempDir(), "shallow")
			s.must("", c("clone", "-q", "--depth=1", url, shallow)...)
			if got := s.must(shallow, "rev-list", "--count", "HEAD"); got != "1\n" {
				t.Errorf("%s: %s commits in a shallow clone", name, got)
			}
			s.must(shallow, c("fetch", "-q", "--unshallow")...)
			if got := s.must(shallow, "rev-list", "--count", "HEAD"); got != "2\n" {
				t.Errorf("%s: %s commits after that", name, got)
			}
		}
		partial := filepath.Join(t.TempDir(), "partial")
		s.must("", "clone", "-q", "--bare", "--filter=blob:none", url, partial)
		if got := s.must(partial, "cat-file", "-s", "main:b"); got != "15000\n" {
			t.Errorf("%s: a blob that was left out: %q", way, got)
		}
	}
	if err := s.faults(); err != nil {
		t.Error(err)
	}
	s.clean()
}

func TestPush(t *testing.T) {
	t.Parallel()
	var checked []string
	o := PushOptions{
		Check: func(ctx context.Context, p *Push) error {
			p.Say("options %q", p.Options)
			for _, c := range p.Changes {
				if c.New != ZeroOID {
					if _, err := p.Repo.Commit(ctx, string(c.New)); err != nil {
						return err // the new objects can be read
					}
				}
				if strings.HasSuffix(c.Ref, "/locked") {
					c.Refused = "this branch is protected"
				}
				checked = append(checked, c.Ref)
			}
			return nil
		},
		Done: func(_ context.Context, p *Push) error {
			p.Say("see you")
			return nil
		},
	}
	s := serve(t, o)
	for way, url := range s.urls() {
		dir := s.work(way)
		s.must(dir, "checkout", "-q", "-B", way)
		id := s.commit(dir, "a-"+way, "1")
		out := s.must(dir, "push", "-o", "ci.skip", "-o", "x=ü", url, "HEAD:refs/heads/"+way, "HEAD:refs/tags/t-"+way)
		if !strings.Contains(out, `remote: options ["ci.skip" "x=ü"]`) || !strings.Contains(out, "remote: see you") {
			t.Errorf("%s: %s", way, out)
		}
		if s.bare.Tip("refs/heads/"+way) != id || s.bare.Tip("refs/tags/t-"+way) != id {
			t.Errorf("%s: not there", way)
		}
		// Some changes are made, some are refused.
		second := s.commit(dir, "b", way)
		out, err := s.git(dir, "push", url, "HEAD:"+way, "HEAD:locked")
		if err == nil || !strings.Contains(out, "[remote rejected] HEAD -> locked (this branch is protected)") || s.bare.Tip("refs/heads/"+way) != second {
			t.Errorf("%s: %v %s", way, err, out)
		}
		// Atomic.
		s.commit(dir, "c", way)
		out, err = s.git(dir, "push", "--atomic", url, "HEAD:"+way, "HEAD:locked")
		if err == nil || !strings.Contains(out, "atomic push failed") || s.bare.Tip("refs/heads/"+way) != second {
			t.Errorf("%s: %v %s", way, err, out)
		}
		s.must(dir, "push", "-q", "--atomic", url, "HEAD:"+way, "HEAD:refs/heads/other-"+way)
		// Force push, deletion, and nothing to do.
		s.must(dir, "push", "-q", "--force", url, id+":"+way)
		if s.bare.Tip("refs/heads/"+way) != id {
			t.Errorf("%s: not forced", way)
		}
		s.must(dir, "push", "-q", url, ":other-"+way, ":refs/tags/t-"+way)
		if s.bare.Tip("refs/heads/other-"+way) != "" || s.bare.Tip("refs/tags/t-"+way) != "" {
			t.Errorf("%s: not deleted", way)
		}
		s.must(dir, "push", url, id+":"+way)
		// Many objects are kept as a pack, and thin packs are completed.
		for i := range 150 {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s%d", way, i)), []byte(strings.Repeat(fmt.Sprintln(i), 100)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s.must(dir, "checkout", "-q", "-B", "many", id)
		s.must(dir, "add", ".")
		s.must(dir, "commit", "-q", "-m", "many")
		s.must(dir, "push", "-q", url, "HEAD:many-"+way)
		packs, err := filepath.Glob(filepath.Join(s.bare.Path, "objects/pack/*.idx"))
		if err != nil || len(packs) == 0 {
			t.Errorf("%s: %v %v", way, packs, err)
		}
		// From a shallow clone.
		shallow := filepath.Join(t.TempDir(), "shallow")
		s.must("", "clone", "-q", "--depth=1", "--branch=many-"+way, url, shallow)
		s.commit(shallow, "z", "z")
		s.must(shallow, "push", "-q", url, "HEAD:many-"+way)
	}
	if err := s.faults(); err != nil {
		t.Error(err)
	}
	if len(checked) == 0 || len(s.pushes) == 0 {
		t.Error("Check was not called")
	}
	s.clean()
}

func TestPushIsRefused(t *testing.T) {
	t.Parallel()
	wrong := errors.New("the database is on fire")
	var check func(*Push) error
	s := serve(t, PushOptions{
		ServeOptions: ServeOptions{Hide: []string{"refs/internal"}},
		MaxSize:      200_000,
		Check: func(_ context.Context, p *Push) error {
			if check != nil {
				return check(p)
			}
			return nil
		},
	})
	base := s.bare.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "a", Content: "1"}}})
	for way, url := range s.urls() {
		dir := s.work(way)
		s.commit(dir, "x-"+way, "1")
		expect := func(name, text string, fault error, args ...string) {
			t.Helper()
			out, err := s.git(dir, append([]string{"push", url}, args...)...)
			if err == nil || !strings.Contains(out, text) {
				t.Errorf("%s, %s: %v %s", way, name, err, out)
			}
			if err := s.faults(); !errors.Is(err, fault) || fault == nil && err != nil {
				t.Errorf("%s, %s: server: %v", way, name, err)
			}
			if s.bare.Tip("refs/heads/main") != base {
				t.Errorf("%s, %s: main has moved", way, name)
			}
		}
		check = func(*Push) error { return wrong }
		expect("a fault", "(internal error)", wrong, "HEAD:main")
		check = func(p *Push) error {
			// Another push wins the race.
			s.bare.Git("update-ref", "refs/heads/race", base)
			return nil
		}
		expect("a race", "reference already exists", nil, "HEAD:race")
		s.bare.Git("update-ref", "-d", "refs/heads/race")
		check = nil
		expect("a hidden ref", "deny updating a hidden ref", nil, "HEAD:refs/internal/x")
		expect("a directory", "exists; cannot create", nil, "HEAD:refs/heads/main/x")
		expect("a blob as a branch", "is not allowed in this ref", nil, strings.TrimSpace(s.must(dir, "rev-parse", "HEAD:a"))+":refs/tags/ok", "HEAD^{tree}:refs/heads/tree")
		random := make([]byte, 3_000_000)
		for i := range random {
			random[i] = byte(rand.Uint32())
		}
		s.commit(dir, "big", string(random))
		expect("too much", "pack exceeds maximum allowed size", ErrTooLarge, "HEAD:main")
		s.must(dir, "reset", "-q", "--hard", "HEAD~1")
		// Objects that fsck refuses.
		tree := gittest.RunInput(t, dir, strings.NewReader("100644 .git\x00"+strings.Repeat("\x01", 20)), "hash-object", "-w", "--literally", "-t", "tree", "--stdin")
		bad := gittest.RunInput(t, dir, strings.NewReader("tree "+tree+"\nauthor A <a@x> 5 +0000\ncommitter A <a@x> 5 +0000\n\nbad\n"), "hash-object", "-w", "-t", "commit", "--stdin")
		out, err := s.git(dir, "push", url, bad+":refs/heads/bad")
		if err == nil || s.bare.Tip("refs/heads/bad") != "" {
			t.Errorf("%s: a bad tree: %v %s", way, err, out)
		}
		_ = s.faults()
	}
	s.clean()
}
