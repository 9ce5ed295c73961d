package api_test

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" // for git objects and packs
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// packEntry is an object in a pack, or a delta to a base outside of it.
type packEntry struct {
	kind byte
	base string // object ID of the base of a delta
	data []byte
}

// rawPack returns a pack with the entries.
func rawPack(t *testing.T, entries ...packEntry) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("PACK")
	for _, n := range []uint32{2, uint32(len(entries))} {
		_ = binary.Write(&b, binary.BigEndian, n) // a bytes.Buffer returns no error
	}
	for _, e := range entries {
		size := len(e.data)
		first := e.kind<<4 | byte(size&15)
		size >>= 4
		for size > 0 {
			b.WriteByte(first | 0x80)
			first, size = byte(size&0x7f), size>>7
		}
		b.WriteByte(first)
		if e.base != "" {
			id, err := hex.DecodeString(e.base)
			if err != nil {
				t.Fatal(err)
			}
			b.Write(id)
		}
		w := zlib.NewWriter(&b)
		_, err := w.Write(e.data)
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	sum := sha1.Sum(b.Bytes())
	return append(b.Bytes(), sum[:]...)
}

// objectID returns the ID of an object.
func objectID(kind string, data []byte) string {
	sum := sha1.Sum(append(fmt.Appendf(nil, "%s %d\x00", kind, len(data)), data...))
	return hex.EncodeToString(sum[:])
}

func treeOf(t *testing.T, name, blob string) []byte {
	t.Helper()
	id, err := hex.DecodeString(blob)
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte("100644 "+name+"\x00"), id...)
}

// TestPushOntoHiddenCommit pushes branches to commits that are only reachable from
// merge request refs, as callers who know the IDs but cannot see these refs.
func TestPushOntoHiddenCommit(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		h := newHidden(t, s)
		r := s.Repository(t, h.id)
		main := r.Tip("refs/heads/main")
		mainTree := r.Git("rev-parse", main+"^{tree}")
		commit := func(tree, parent, message string) []byte {
			return fmt.Appendf(nil, "tree %s\nparent %s\nauthor A <a@example.org> 1600000000 +0000\ncommitter A <a@example.org> 1600000000 +0000\n\n%s\n", tree, parent, message)
		}
		// A delta that copies a hidden file and adds a byte.
		size := len(hiddenText) + 1
		delta := append([]byte{byte(size), byte(size + 1), 0x80 | 0x10, byte(size)}, 1, 'x')
		copied := objectID("blob", []byte(hiddenText+"\nx"))
		copiedTree := treeOf(t, "a", copied)
		copiedCommit := commit(objectID("tree", copiedTree), main, "a copy")
		onto, tree := commit(mainTree, h.head, "onto"), commit(h.tree, main, "tree")
		holding := treeOf(t, "a", h.blob)
		blob := commit(objectID("tree", holding), main, "blob")
		attacks := []struct {
			name string
			tip  string
			pack []byte
		}{
			{"the commit", h.head, rawPack(t)},
			{"an earlier commit", h.earlier, rawPack(t)},
			{"the commit, beside another object", h.head, rawPack(t, packEntry{kind: 3, data: []byte("else")})},
			{"a commit on the commit", objectID("commit", onto), rawPack(t, packEntry{kind: 1, data: onto})},
			{"a commit with the directory", objectID("commit", tree), rawPack(t, packEntry{kind: 1, data: tree})},
			{"a commit with the file", objectID("commit", blob), rawPack(t, packEntry{kind: 2, data: holding}, packEntry{kind: 1, data: blob})},
			{"a delta to the file", objectID("commit", copiedCommit),
				rawPack(t, packEntry{kind: 7, base: h.blob, data: delta}, packEntry{kind: 2, data: copiedTree}, packEntry{kind: 1, data: copiedCommit})},
		}
		push := func(user, password, ref, tip string, pack []byte) apptest.Answer {
			t.Helper()
			line := strings.Repeat("0", 40) + " " + tip + " " + ref + "\x00 report-status"
			body := append(fmt.Appendf(nil, "%04x%s0000", len(line)+4, line), pack...)
			q, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/"+h.page+".git/git-receive-pack", bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			q.Header.Set("Content-Type", "application/x-git-receive-pack-request")
			q.SetBasicAuth(user, password)
			return s.Exchange(t, q)
		}
		at := fmt.Sprintf("/projects/%d", h.id)
		// The developer has fetched the commits of the merge request.
		dir := t.TempDir()
		header := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("developer:"+h.tokens["developer"]))
		git := func(args ...string) (string, error) {
			c := exec.CommandContext(t.Context(), "git", append([]string{"-c", "http.extraHeader=" + header}, args...)...)
			c.Dir = dir
			c.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_GLOBAL=/dev/null", "HOME="+dir, "GIT_DIR="+filepath.Join(dir, "r.git"))
			out, err := c.CombinedOutput()
			return string(out), err
		}
		web := s.URL + "/" + h.page + ".git"
		for _, args := range [][]string{{"init", "-q", "--bare"}, {"fetch", "-q", web, "refs/merge-requests/1/head:refs/heads/mine", "refs/heads/main:refs/heads/main"}} {
			if out, err := git(args...); err != nil {
				t.Fatal(err, out)
			}
		}
		// If merge requests are disabled, their refs are hidden.
		s.Check(t, apptest.Call{Do: "PUT " + at, As: h.tokens["owner"], JSON: `{"merge_requests_access_level":"disabled"}`, Status: 200})
		var bot struct{ Token string }
		s.Check(t, apptest.Call{Do: "POST " + at + "/access_tokens", As: h.tokens["owner"], JSON: `{"name":"b","scopes":["write_repository"],"access_level":30}`, Status: 201}).JSON(t, &bot)
		for _, who := range []struct{ name, user, password string }{
			{"personal token", "developer", h.tokens["developer"]},
			{"write_repository", "developer", s.Token(t, h.ids["developer"], "write_repository")},
			{"OAuth", "oauth2", oauthToken(t, s, h.ids["developer"], "developer", "write_repository")},
			{"project access token", "bot", bot.Token},
		} {
			for _, a := range attacks {
				for _, ref := range []string{"refs/heads/stolen", "refs/tags/stolen"} {
					got := push(who.user, who.password, ref, a.tip, a.pack)
					if got.Status != 200 || !strings.Contains(string(got.Body), "ng "+ref) {
						t.Errorf("%s, %s to %s: %d %q", who.name, a.name, ref, got.Status, got.Body)
						r.Git("update-ref", "-d", ref)
					}
				}
			}
		}
		// A visible commit can be pushed without its objects, and a hidden commit
		// with its objects.
		if got := push("developer", h.tokens["developer"], "refs/heads/again", main, rawPack(t)); !strings.Contains(string(got.Body), "ok refs/heads/again") {
			t.Errorf("a branch on a visible commit: %d %q", got.Status, got.Body)
		}
		parent := r.Git("rev-list", "--max-parents=0", "main")
		if got := push("developer", h.tokens["developer"], "refs/tags/first", parent, rawPack(t)); !strings.Contains(string(got.Body), "ok refs/tags/first") {
			t.Errorf("a tag on the first commit: %d %q", got.Status, got.Body)
		}
		if out, err := git("push", "-q", web, "mine"); err != nil {
			t.Errorf("commits that are sent: %v %s", err, out)
		}
	})
}
