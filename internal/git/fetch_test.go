package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"svc/internal/git/gittest"
	"svc/internal/git/pktline"
)

// watchProcesses makes the engine run git through a script that records each start. It
// returns a function that counts the starts of a command since its last call.
func watchProcesses(t *testing.T, e *Engine) func(name string) int {
	t.Helper()
	dir := t.TempDir()
	log, script := filepath.Join(dir, "log"), filepath.Join(dir, "git")
	text := "#!/bin/sh\necho \"$*\" >>" + log + "\nexec " + e.program + " \"$@\"\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	e.program = script
	return func(name string) int {
		t.Helper()
		text, err := os.ReadFile(log)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if err := os.WriteFile(log, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(text), name)
	}
}

func TestClonesShareAPack(t *testing.T) {
	t.Parallel()
	s := serve(t, PushOptions{})
	started := watchProcesses(t, s.repo.engine)
	var stream bytes.Buffer
	if err := gittest.Stream(&stream, gittest.Size{Commits: 20, Files: 300}); err != nil {
		t.Fatal(err)
	}
	s.bare.Import(&stream)
	s.bare.Git("tag", "-m", "one", "v1", "main~3")
	clones := func(n int, args ...string) {
		t.Helper()
		var wg sync.WaitGroup
		for i := range n {
			for way, url := range s.urls() {
				dir := filepath.Join(t.TempDir(), fmt.Sprint(way, i))
				wg.Go(func() {
					out, err := s.git("", append(append([]string{"clone", "-q", "--bare"}, args...), url, dir)...)
					if err != nil {
						t.Errorf("%v: %s", err, out)
						return
					}
					if len(args) == 0 {
						gittest.Run(t, dir, "fsck", "--strict")
					}
				})
			}
		}
		wg.Wait()
	}
	// Each clone has one process that lists refs; the other processes create packs.
	packs := func(clones int) int { return started("upload-pack") - clones }
	clones(5)
	if n := packs(10); n != 1 {
		t.Errorf("%d packs for 10 clones", n)
	}
	clones(1, "--depth=1")
	clones(1, "--filter=blob:none")
	if n := packs(4); n != 2 {
		t.Errorf("%d packs for two kinds of other clones", n)
	}
	// Another tag, which is sent along with the commit that it points to.
	s.bare.Git("tag", "-m", "two", "v2", "main~2")
	dir := filepath.Join(t.TempDir(), "single")
	s.must("", "clone", "-q", "--single-branch", s.url, dir)
	s.bare.Git("tag", "-m", "three", "v3", "main~2")
	s.must("", "clone", "-q", "--single-branch", s.url, dir+"2")
	if got := s.must(dir+"2", "tag"); got != "v1\nv2\nv3\n" {
		t.Errorf("tags %q", got)
	}
	if n := packs(2); n != 2 {
		t.Errorf("%d packs, want one for each set of tags", n)
	}
	// Fetches of new objects are not shared.
	s.bare.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "new", Content: "1"}}})
	s.must(dir, "fetch", "-q")
	if got := s.must(dir, "log", "-1", "--format=%H", "origin/main"); strings.TrimSpace(got) != s.bare.Tip("main") {
		t.Errorf("fetched %q", got)
	}
	if err := s.faults(); err != nil {
		t.Error(err)
	}
	s.clean()
}

// TestCloneOfBrokenPack checks that every client learns that its shared pack could not be
// created.
func TestCloneOfBrokenPack(t *testing.T) {
	t.Parallel()
	s := serve(t, PushOptions{})
	s.bare.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "a", Content: "1"}}})
	e := s.repo.engine
	script := filepath.Join(t.TempDir(), "git")
	text := "#!/bin/sh\ncase \"$*\" in *upload-pack*) head -c 200 | grep -q command=fetch && { printf '000dpackfile\\n0015\\002half a packet'; kill -9 $$; };; esac\n" +
		"exec " + e.program + " \"$@\"\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	tip := s.bare.Tip("main")
	e.program = script
	for _, way := range []string{"http", "ssh"} {
		var request []byte
		for _, line := range []string{"command=fetch", "object-format=sha1"} {
			request = pktline.Append(request, line)
		}
		request = append(request, "0001"...)
		for _, line := range []string{"ofs-delta", "want " + tip, "done"} {
			request = pktline.Append(request, line+"\n")
		}
		request = pktline.AppendFlush(request)
		var out bytes.Buffer
		o := ServeOptions{Protocol: "version=2", Stateless: way == "http"}
		err := s.repo.UploadPack(t.Context(), bytes.NewReader(request), &out, o)
		if !errors.Is(err, ErrKilled) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v", way, err)
		}
		if got := out.String(); !strings.HasSuffix(got, "000dpackfile\n0023\x03the pack could not be created\n") {
			t.Errorf("%s: %q", way, got)
		}
	}
	if _, items := e.spool.Usage(); items != 0 {
		t.Error("it is kept")
	}
}

func TestHiddenIsNotFetched(t *testing.T) {
	t.Parallel()
	s := serve(t, PushOptions{ServeOptions: ServeOptions{Hide: []string{"refs/internal/"}}})
	old := s.bare.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "a", Content: "1"}}})
	s.bare.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "a", Content: "2"}}})
	below := s.bare.Commit(gittest.Commit{Branch: "hidden", Changes: []gittest.Change{{Path: "a", Content: "3"}}})
	hidden := s.bare.Commit(gittest.Commit{Branch: "hidden", Changes: []gittest.Change{{Path: "a", Content: "4"}}})
	s.bare.Git("update-ref", "refs/internal/x", hidden)
	s.bare.Git("tag", "-m", "secret", "secret", hidden)
	tag := s.bare.Tip("refs/tags/secret")
	s.bare.Git("update-ref", "refs/internal/tag", tag)
	s.bare.Git("update-ref", "-d", "refs/tags/secret")
	s.bare.Git("update-ref", "-d", "refs/heads/hidden")
	for way, url := range s.urls() {
		for _, version := range []string{"0", "2"} {
			dir := filepath.Join(t.TempDir(), way+version)
			gittest.Run(t, "", "init", "-q", dir)
			fetch := func(what string) error {
				_, err := s.git(dir, "-c", "protocol.version="+version, "fetch", "-q", url, what)
				return err
			}
			for _, id := range []string{hidden, below, tag, strings.Repeat("ab", 20), "refs/internal/x"} {
				if err := fetch(id); err == nil {
					t.Errorf("%s version %s: %s was given", way, version, id)
				}
			}
			_ = s.faults() // git died of it in version 0
			for _, id := range []string{old, "refs/heads/main"} {
				if err := fetch(id); err != nil && (id != old || version == "2") {
					t.Errorf("%s version %s: %s: %v, %v", way, version, id, err, s.faults())
				}
			}
		}
	}
	// It is visible to clients that see the hidden refs.
	s.mu.Lock()
	s.o.Hide = nil
	s.mu.Unlock()
	dir := filepath.Join(t.TempDir(), "all")
	gittest.Run(t, "", "init", "-q", dir)
	for _, id := range []string{hidden, below, tag} {
		s.must(dir, "fetch", "-q", s.url, id)
	}
	s.clean()
}

func TestInquiries(t *testing.T) {
	t.Parallel()
	s := serve(t, PushOptions{})
	tip := s.bare.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "a", Content: "1"}}})
	packets := func(lines ...string) string {
		var b []byte
		for _, line := range lines {
			switch line {
			case "flush":
				b = pktline.AppendFlush(b)
			case "delim":
				b = append(b, "0001"...)
			default:
				b = pktline.Append(b, line+"\n")
			}
		}
		return string(b)
	}
	for _, c := range []struct{ name, in, out, err string }{
		{"nothing", "", "", ""},
		{"a flush", packets("flush"), "", ""},
		{"no command", packets("agent=x", "flush"), `ERR unknown command ""`, ""},
		{"another command", packets("command=object-info", "delim", "size", "oid "+tip, "flush"), `ERR unknown command "object-info"`, ""},
		{"an argument that git does not know", packets("command=fetch", "delim", "want-ref refs/heads/main", "done", "flush"), "", "unexpected line"},
		{"no id", packets("command=fetch", "delim", "want HEAD", "done", "flush"), `ERR upload-pack: not our ref "HEAD"`, ""},
		{"cut off", packets("command=fetch", "delim"), "ERR malformed packet", "unexpected EOF"},
		{"no packets", "GET / HTTP/1.1", "ERR malformed packet", "malformed packet"},
		{"too much", packets("command=fetch", "delim") + strings.Repeat(packets("have "+strings.Repeat("x", 60_000)), 300), "ERR malformed packet", "too large"},
	} {
		var out bytes.Buffer
		err := s.repo.UploadPack(t.Context(), strings.NewReader(c.in), &out, ServeOptions{Protocol: "version=2", Stateless: true})
		if !strings.Contains(out.String(), c.out) || c.out == "" && out.Len() > 0 {
			t.Errorf("%s: %q", c.name, out.String())
		}
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	// An idle client is disconnected.
	ctx, cancel := context.WithCancel(t.Context())
	in, hold := io.Pipe()
	defer hold.Close()
	ended := make(chan error)
	go func() { ended <- s.repo.UploadPack(ctx, in, io.Discard, ServeOptions{Protocol: "version=2"}) }()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	none := s.repo.engine.Repo(s.repo.Path() + "x")
	if err := none.AdvertiseUpload(t.Context(), io.Discard, ServeOptions{Protocol: "version=2"}); !errors.Is(err, ErrNoRepository) {
		t.Error(err)
	}
	if err := none.UploadPack(t.Context(), in, io.Discard, ServeOptions{Protocol: "version=2"}); !errors.Is(err, ErrNoRepository) {
		t.Error(err)
	}
}

func TestInquiryKey(t *testing.T) {
	t.Parallel()
	see := &tips{tags: []string{"1 refs/tags/a"}}
	key := func(args ...string) string {
		k, ok := (&inquiry{args: args}).key(see)
		if !ok {
			return ""
		}
		return k
	}
	base := key("want a", "want b", "ofs-delta", "done")
	if base == "" || key("ofs-delta", "want b", "want a", "want a", "done") != base {
		t.Error("the order counts")
	}
	for _, args := range [][]string{
		{"want a", "ofs-delta", "done"}, {"want a", "want b", "done"}, {"want a", "want b", "ofs-delta", "done", "deepen 1"},
		{"want a", "want b", "ofs-delta", "done", "filter blob:none"}, {"want a", "want b", "ofs-delta", "done", "include-tag"},
	} {
		if k := key(args...); k == base || k == "" {
			t.Errorf("%q has the key %q", args, k)
		}
	}
	for _, args := range [][]string{
		{"want a"}, {"want a", "have b", "done"}, {"want a", "deepen-not main", "done"}, {"want-ref main", "done"},
		{"want a", "filter sparse:oid=main:x", "done"}, {"want a", "sideband-all", "done"},
	} {
		if k := key(args...); k != "" {
			t.Errorf("%q is shared", args)
		}
	}
	tagged := key("want a", "include-tag", "done")
	see.tags = append(see.tags, "2 refs/tags/b")
	if key("want a", "include-tag", "done") == tagged {
		t.Error("tags do not count")
	}
}

func FuzzInquiry(f *testing.F) {
	f.Add([]byte("0014command=ls-refs\n0000"))
	f.Add([]byte("0011command=fetch0001000fofs-delta0009done\n0000"))
	f.Add([]byte("0000"))
	f.Add([]byte("00010002"))
	f.Fuzz(func(t *testing.T, data []byte) {
		in := bytes.NewReader(data)
		q, err := readInquiry(in)
		if err != nil || q == nil {
			return
		}
		// The request that git gets is equivalent.
		again, err := readInquiry(bytes.NewReader(q.raw))
		if err != nil || again.command != q.command || strings.Join(again.args, "\n") != strings.Join(q.args, "\n") {
			t.Errorf("%q became %q: %v", data, q.raw, err)
		}
		if read := len(data) - in.Len(); !strings.EqualFold(string(data[:read]), string(q.raw)) {
			t.Errorf("%q became %q", data[:read], q.raw)
		}
	})
}
