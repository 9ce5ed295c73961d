package git

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"svc/internal/git/gittest"
	"svc/internal/git/pktline"
)

func unzip(q *http.Request) io.Reader {
	if q.Header.Get("Content-Encoding") != "gzip" {
		return q.Body
	}
	z, err := gzip.NewReader(q.Body)
	if err != nil {
		return strings.NewReader("")
	}
	return z
}

// raw sends a push that no git client would send.
func raw(t *testing.T, r Repo, o PushOptions, lines []string, pack string) (string, *Push, error) {
	t.Helper()
	o.Stateless = true
	var b []byte
	for i, line := range lines {
		if i == 0 {
			line += "\x00report-status"
		}
		b = pktline.Append(b, line)
	}
	b = append(pktline.AppendFlush(b), pack...)
	var out bytes.Buffer
	push, err := r.ReceivePack(t.Context(), bytes.NewReader(b), &out, o)
	return out.String(), push, err
}

func TestHostilePush(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	base := g.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "a", Content: "1"}}})
	tip := g.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "a", Content: "2"}}})
	pack := func(ids ...string) string {
		cmd := gittest.Command(g.Path, "pack-objects", "--stdout", "-q")
		cmd.Stdin = strings.NewReader(strings.Join(ids, "\n"))
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	// A second repository with only the first commit.
	other := gittest.New(t)
	h := r.engine.Repo(other.Path)
	other.Git("fetch", "-q", g.Path, base+":refs/heads/main")
	tree, blob := g.Git("rev-parse", tip+"^{tree}"), g.Git("rev-parse", tip+":a")
	whole, partial := pack(tip, tree, blob), pack(tip, tree)
	// A commit whose tree is missing, and an empty pack.
	torn := other.Object("commit", "tree "+tree+"\nauthor A <a@x> 5 +0000\ncommitter A <a@x> 5 +0000\n\ntorn\n")
	empty := pack()
	zero := string(ZeroOID)
	for _, c := range []struct {
		name  string
		lines []string
		pack  string
		want  string
	}{
		{"missing objects", []string{zero + " " + tip + " refs/heads/x"}, partial, "ng refs/heads/x unpacker error"},
		{"object nowhere", []string{zero + " " + blob + " refs/tags/x"}, empty, "ng refs/tags/x missing necessary objects"},
		{"history with a hole", []string{zero + " " + torn + " refs/heads/x", zero + " " + base + " refs/heads/-y"}, empty, "ng refs/heads/x missing necessary objects"},
		{"dots", []string{zero + " " + tip + " refs/heads/../../config"}, whole, "ng refs/heads/../../config funny refname"},
		{"option", []string{zero + " " + tip + " refs/heads/--upload-pack=x"}, whole, "funny refname"},
		{"outside refs", []string{zero + " " + tip + " HEAD"}, whole, "ng HEAD funny refname"},
		{"lock", []string{zero + " " + tip + " refs/heads/x.lock"}, whole, "funny refname"},
		{"long", []string{zero + " " + tip + " refs/heads/" + strings.Repeat("a", 4096)}, whole, "funny refname"},
		{"control", []string{zero + " " + tip + " refs/heads/a\x01b"}, whole, "funny refname"},
		{"twice", []string{zero + " " + tip + " refs/heads/x", zero + " " + base + " refs/heads/x"}, partial, "ng refs/heads/x multiple updates"},
		{"nothing to delete", []string{zero + " " + zero + " refs/heads/x"}, "", "ng refs/heads/x there is nothing to delete"},
		{"wrong old value", []string{base + " " + tip + " refs/heads/none"}, whole, "ng refs/heads/none "},
		{"wrong old value of a deletion", []string{tip + " " + zero + " refs/heads/main"}, "", "ng refs/heads/main is at "},
		{"no pack", []string{zero + " " + tip + " refs/heads/x"}, "", "unpack the pack could not be read"},
		{"rubbish", []string{zero + " " + tip + " refs/heads/x"}, "PACK\x00\x00\x00\x02\x00\x00\x00\x01rubbish", "unpack unpack-objects abnormal exit"},
		{"half a pack", []string{zero + " " + tip + " refs/heads/x"}, whole[:len(whole)/2], "abnormal exit"},
		{"many objects that are not there", []string{zero + " " + tip + " refs/heads/x"}, "PACK\x00\x00\x00\x02\xff\xff\xff\xffrubbish", "unpack index-pack abnormal exit"},
	} {
		out, _, _ := raw(t, h, PushOptions{}, c.lines, c.pack)
		if !strings.Contains(out, c.want) {
			t.Errorf("%s: %q", c.name, out)
		}
		if got := other.Git("for-each-ref", "--format=%(refname) %(objectname)"); got != "refs/heads/main "+base {
			t.Fatalf("%s: %s", c.name, got)
		}
		if _, err := h.Info(t.Context(), OID(tip)); !errors.Is(err, ErrNotFound) {
			t.Fatalf("%s: what was refused is there: %v", c.name, err)
		}
	}
	// One change of many with a hole is found with few processes.
	lines := []string{zero + " " + torn + " refs/heads/torn"}
	for i := range 100 {
		lines = append(lines, fmt.Sprintf("%s %s refs/heads/whole-%d", zero, base, i))
	}
	if out, _, _ := raw(t, h, PushOptions{}, lines, empty); !strings.Contains(out, "ng refs/heads/torn missing necessary objects") || strings.Count(out, "ok refs/heads/whole-") != 100 {
		t.Errorf("a hole among many: %.300q", out)
	}
	for i := range 100 {
		other.Git("update-ref", "-d", fmt.Sprintf("refs/heads/whole-%d", i))
	}
	// Long names are not collected without end.
	lines = nil
	for i := range 600 {
		lines = append(lines, fmt.Sprintf("%s %s refs/heads/%d%s", zero, base, i, strings.Repeat("a", 60_000)))
	}
	if out, _, err := raw(t, h, PushOptions{}, lines, empty); !errors.Is(err, pktline.ErrMalformed) {
		t.Errorf("36 MB of names: %v, %.100q", err, out)
	}
	out, push, err := raw(t, h, PushOptions{}, []string{base + " " + tip + " refs/heads/main"}, whole)
	if err != nil || !strings.Contains(out, "ok refs/heads/main") || push.Changes[0].Refused != "" || other.Tip("main") != tip {
		t.Errorf("the good one: %q %v", out, err)
	}
	other.Git("fsck", "--connectivity-only")
}

func TestMalformedPush(t *testing.T) {
	t.Parallel()
	r, _ := open(t)
	for _, text := range []string{"xxxx", "0003", "ffff", "0010half", "0008abcd0000", "00" + "8a" + strings.Repeat("a", 130), "0001", "0009short"} {
		var out bytes.Buffer
		if _, err := r.ReceivePack(t.Context(), strings.NewReader(text), &out, PushOptions{ServeOptions: ServeOptions{Stateless: true}}); err == nil {
			t.Errorf("%q: %q", text, out.String())
		}
	}
	for _, text := range []string{"", "0000"} {
		push, err := r.ReceivePack(t.Context(), strings.NewReader(text), io.Discard, PushOptions{})
		if push != nil || err != nil {
			t.Errorf("%q: %v %v", text, push, err)
		}
	}
}

// TestPushDisconnects checks that a client that disconnects while sending leaves nothing behind.
func TestPushDisconnects(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	in, client := io.Pipe()
	line := string(ZeroOID) + " " + string(EmptyTree) + " refs/heads/x\x00report-status side-band-64k"
	go func() {
		_, _ = client.Write(append(pktline.AppendFlush(pktline.Append(nil, line)), "PACK\x00\x00\x00\x02\x00\x00\x10\x00"...))
		cancel()
	}()
	_, err := r.ReceivePack(ctx, in, io.Discard, PushOptions{ServeOptions: ServeOptions{Stateless: true}})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	client.Close()
	s := server{t: t, repo: r, bare: g}
	s.clean()
}

// TestFeedIsDrained checks that the input of a client is read to its end after git has given
// up, so that the client reads the reason.
func TestFeedIsDrained(t *testing.T) {
	t.Parallel()
	in, client := io.Pipe()
	f, err := newFeed(in)
	if err != nil {
		t.Fatal(err)
	}
	f.stop()
	if n, err := client.Write(make([]byte, 1<<20)); n != 1<<20 || err != nil {
		t.Error(n, err)
	}
	client.Close()
	<-f.ended
}

func FuzzRequest(f *testing.F) {
	zero := string(ZeroOID)
	f.Add(append(pktline.AppendFlush(pktline.Append(nil, zero+" "+zero+" refs/heads/x\x00report-status push-options")), pktline.AppendFlush(pktline.Append(nil, "ci.skip"))...))
	f.Add(pktline.AppendFlush(pktline.Append(pktline.Append(nil, "shallow "+zero), zero+" "+zero+" x")))
	f.Fuzz(func(t *testing.T, in []byte) {
		q, err := readRequest(bytes.NewReader(in))
		if err != nil || q == nil {
			return
		}
		if len(q.changes) == 0 || len(q.options) > maxPushOptions {
			t.Errorf("%+v", q)
		}
		for _, c := range q.changes {
			if len(c.Old) != 40 || len(c.New) != 40 {
				t.Errorf("%+v", c)
			}
		}
	})
}
