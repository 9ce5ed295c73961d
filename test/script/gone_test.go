package script_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
	"svc/internal/waittest"
)

// bigProject creates a project of alice with a repository that takes several seconds
// to send, and returns its directory.
func bigProject(t *testing.T, s *apptest.Server) (token, dir string) {
	t.Helper()
	_, token = s.User(t, "alice")
	s.Check(t, apptest.Call{Do: "POST /projects", As: token, JSON: `{"name":"big","visibility":"public"}`, Status: 201})
	work := t.TempDir()
	gittest.Run(t, work, "init", "-q", "--initial-branch=main", ".")
	noise := make([]byte, 16<<20) // more than the buffers of pipes and sockets
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	if err := os.WriteFile(filepath.Join(work, "big"), noise, 0o600); err != nil {
		t.Fatal(err)
	}
	gittest.Run(t, work, "-c", "core.compression=0", "add", "big")
	gittest.Run(t, work, "commit", "-q", "-m", "big")
	gittest.Run(t, work, "-c", "core.compression=0", "push", "-q", "http://alice:"+token+"@"+s.Addr()+"/alice/big.git", "main")
	return token, repositoryOf(s, "alice/big")
}

// sending counts the git processes that send a pack from a repository.
func sending(t *testing.T, dir string) int {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, cwd := range all {
		if at, err := os.Readlink(cwd); err != nil || at != dir {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(cwd), "cmdline"))
		if bytes.Contains(line, []byte("upload-pack")) || bytes.Contains(line, []byte("pack-objects")) {
			n++
		}
	}
	return n
}

// TestClientGone disconnects clients during a clone, over HTTP and SSH and with both
// protocol versions, and checks that the git processes end.
func TestClientGone(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *apptest.Server) {
		token, dir := bigProject(t, s)
		tip := gittest.Run(t, dir, "rev-parse", "refs/heads/main")
		want := map[string]string{
			"version=2": packets("command=fetch", "agent=git/2", "", "ofs-delta", "no-progress", "want "+tip, "done"),
			"version=0": packets("want "+tip+" side-band-64k ofs-delta") + "0000" + packet("done\n"),
		}
		for protocol, body := range want {
			r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/alice/big.git/git-upload-pack", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/x-git-upload-pack-request")
			r.Header.Set("Git-Protocol", protocol)
			transport := &http.Transport{}
			res, err := transport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			start := make([]byte, 100_000)
			if _, err := io.ReadFull(res.Body, start); err != nil {
				t.Fatalf("%s: %v: %.200q", protocol, err, start)
			}
			if protocol == "version=0" { // with version 2, git may already have written everything to the spool
				waittest.For(t, protocol+": git sends", func() bool { return sending(t, dir) > 0 })
			}
			res.Body.Close() // closes the connection before most of the response was sent
			waittest.For(t, protocol+": git ends", func() bool { return sending(t, dir) == 0 })
		}

		key := filepath.Join(t.TempDir(), "key")
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		public, err := os.ReadFile(key + ".pub")
		if err != nil {
			t.Fatal(err)
		}
		s.Check(t, apptest.Call{Do: "POST /user/keys", As: token, Status: 201, JSON: fmt.Sprintf(`{"title":"k","key":%q}`, strings.TrimSpace(string(public)))})
		host, port, _ := strings.Cut(s.SSHAddr(), ":")
		cmd := exec.Command("ssh", "-F", "none", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-i", key,
			"-p", port, "git@"+host, "git-upload-pack 'alice/big.git'")
		cmd.Stdin = io.MultiReader(strings.NewReader(want["version=0"]), forever{})
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, 100_000)); err != nil {
			t.Fatal(err)
		}
		waittest.For(t, "ssh: git sends", func() bool { return sending(t, dir) > 0 })
		_ = cmd.Process.Kill()
		waittest.For(t, "ssh: git ends", func() bool { return sending(t, dir) == 0 })
	})
}

// forever is a reader that never returns.
type forever struct{}

// Read implements io.Reader.
func (forever) Read([]byte) (int, error) { select {} }

// packets encodes lines as packets; an empty line is a delimiter packet.
func packets(lines ...string) string {
	var b strings.Builder
	for _, line := range lines {
		if line == "" {
			b.WriteString("0001")
			continue
		}
		b.WriteString(packet(line + "\n"))
	}
	if strings.HasPrefix(lines[0], "command=") {
		b.WriteString("0000")
	}
	return b.String()
}

func packet(line string) string { return fmt.Sprintf("%04x%s", len(line)+4, line) }

// TestCraftedPacks pushes packs that git would not create. Each is rejected with a
// reason, and leaves no files behind.
func TestCraftedPacks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *apptest.Server) {
		_, token := s.User(t, "alice")
		s.Check(t, apptest.Call{Do: "POST /projects", As: token, JSON: `{"name":"p","initialize_with_readme":true}`, Status: 201})
		dir := repositoryOf(s, "alice/p")

		work := gittest.New(t)
		blob := work.Object("blob", "text")
		tree := work.Object("tree", "100644 f\x00"+string(unhex(t, blob)))
		commit := work.Git("commit-tree", "-m", "x", tree)
		pack := func(objects ...string) []byte {
			cmd := gittest.Command(work.Path, "pack-objects", "--stdout", "-q")
			cmd.Stdin = strings.NewReader(strings.Join(objects, "\n") + "\n")
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		whole := pack(commit, tree, blob)
		flipped := bytes.Clone(whole)
		flipped[len(flipped)-1] ^= 1
		inside := bytes.Clone(whole)
		inside[20] ^= 0xff
		many := bytes.Clone(whole)
		copy(many[8:], "\xff\xff\xff\xff")
		slashTree := work.Object("tree", "100644 a/b\x00"+string(unhex(t, blob)))
		slashCommit := work.Git("commit-tree", "-m", "x", slashTree)

		for _, c := range []struct {
			name string
			ref  string
			id   string
			pack []byte
			want string // part of the response
		}{
			{"missing tree and blob", "refs/heads/x", commit, pack(commit), "ng refs/heads/x unpacker error"},
			{"missing blob", "refs/heads/x", commit, pack(commit, tree), "ng refs/heads/x unpacker error"},
			{"missing tip", "refs/heads/x", strings.Repeat("1", 40), whole, "missing necessary objects"},
			{"wrong checksum", "refs/heads/x", commit, flipped, "ng refs/heads/x unpacker error"},
			{"broken object", "refs/heads/x", commit, inside, "ng refs/heads/x unpacker error"},
			{"cut off", "refs/heads/x", commit, whole[:len(whole)-30], "ng refs/heads/x unpacker error"},
			{"too many announced", "refs/heads/x", commit, many, "ng refs/heads/x unpacker error"},
			{"no pack", "refs/heads/x", commit, []byte("this is no pack at all"), "ng refs/heads/x unpacker error"},
			{"nothing", "refs/heads/x", commit, nil, "ng refs/heads/x"},
			{"slash in a name", "refs/heads/x", slashCommit, pack(slashCommit, slashTree, blob), "ng refs/heads/x unpacker error"},
			{"a blob as a branch", "refs/heads/x", blob, whole, "ng refs/heads/x"},
			{"name with an option", "refs/heads/-d", commit, whole, "funny refname"},
			{"name that climbs", "refs/heads/../../config", commit, whole, "funny refname"},
			{"name without refs", "config", commit, whole, "funny refname"},
			{"absolute name", "/etc/passwd", commit, whole, "funny refname"},
			{"name with a line", "refs/heads/a\nb", commit, whole, "funny refname"},
			{"name that is long", "refs/heads/" + strings.Repeat("a/", 2000), commit, whole, "funny refname"},
			{"head", "HEAD", commit, whole, "funny refname"},
			{"our own", "refs/svc/x", commit, whole, "hidden"},
			// Git treats the text after a NUL as capabilities; the ref name ends
			// before it.
			{"name with a NUL", "refs/heads/..\x00x", commit, whole, "funny refname"},
			{"and one that is good", "refs/heads/good", commit, whole, "ok refs/heads/good"},
		} {
			line := strings.Repeat("0", 40) + " " + c.id + " " + c.ref
			if !strings.Contains(c.ref, "\x00") {
				line += "\x00 report-status"
			} else {
				line += " report-status"
			}
			body := append([]byte(packet(line)+"0000"), c.pack...)
			r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/alice/p.git/git-receive-pack", bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/x-git-receive-pack-request")
			r.SetBasicAuth("alice", token)
			got := s.Exchange(t, r)
			if got.Status != 200 || !strings.Contains(string(got.Body), c.want) {
				t.Errorf("%s: %d %q, want %q", c.name, got.Status, got.Body, c.want)
			}
			if strings.Contains(string(got.Body), dir) {
				t.Errorf("%s: the response contains the path of the repository: %s", c.name, got.Body)
			}
			if err := checkRepository(dir); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		if refs := gittest.Run(t, dir, "for-each-ref", "--format=%(refname)"); refs != "refs/heads/good\nrefs/heads/main" {
			t.Errorf("refs: %s", refs)
		}
	})
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
