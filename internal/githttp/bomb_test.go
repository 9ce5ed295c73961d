package githttp_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/git"
	"svc/internal/waittest"
)

// bomb returns a pack with one entry that declares a larger size than its data has:
// a tree of 2 GiB or, as a delta, a result of that size.
func bomb(delta bool) []byte {
	const size = 2 << 30
	b := []byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01")
	data := []byte("x")
	if delta {
		data = append(binary.AppendUvarint(binary.AppendUvarint(nil, 5), size), 1, 'x')
		b = append(append(b, 7<<4|byte(len(data))), make([]byte, 20)...)
	} else {
		b = append(b, 2<<4|0x80)
		b = binary.AppendUvarint(b, size>>4)
	}
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	_, _ = w.Write(data)
	_ = w.Close()
	b = append(b, z.Bytes()...)
	sum := sha1.Sum(b)
	return append(b, sum[:]...)
}

// packOf returns the header of a pack with a number of entries.
func packOf(entries int) []byte {
	return binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(entries))
}

// addEntry adds an entry to a pack: its type and size, the base of a delta, and its
// data.
func addEntry(t *testing.T, pack []byte, kind byte, size int, base []byte, data io.Reader) []byte {
	t.Helper()
	head := kind<<4 | byte(size&15)
	if size >>= 4; size > 0 {
		pack = binary.AppendUvarint(append(pack, head|0x80), uint64(size))
	} else {
		pack = append(pack, head)
	}
	pack = append(pack, base...)
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	if _, err := io.Copy(w, data); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return append(pack, z.Bytes()...)
}

func closePack(pack []byte) []byte {
	sum := sha1.Sum(pack)
	return append(pack, sum[:]...)
}

// deltaChain returns a pack with n deltas, each based on the result of the previous
// one. Each result has 400 MiB.
func deltaChain(t *testing.T, n int) []byte {
	const size = 400 << 20
	pack, before := packOf(n), uint64(5)
	for range n {
		data := append(binary.AppendUvarint(binary.AppendUvarint(nil, before), size), 1, 'x')
		pack, before = addEntry(t, pack, 7, len(data), make([]byte, 20), bytes.NewReader(data)), size
	}
	return closePack(pack)
}

// zeros returns the data of a blob of n zero bytes, which are compressed to almost
// nothing in a pack.
func zeros(n int) io.Reader { return bytes.NewReader(make([]byte, n)) }

// TestLargePushesShareSlots lets a push that expands to much data occupy the only
// slot for large pushes. Another large push is rejected after a while, small ones
// are not.
func TestLargePushesShareSlots(t *testing.T) {
	t.Parallel()
	apptest.EachWith(t, apptest.Options{Git: git.Limits{LargePushes: 1, Wait: 25 * time.Millisecond}}, func(t *testing.T, s *apptest.Server) {
		_, token := s.User(t, "olga")
		newProject(t, s, token, "p", "private")
		command := func(ref string) []byte {
			line := strings.Repeat("0", 40) + " " + strings.Repeat("1", 40) + " refs/heads/" + ref + "\x00report-status"
			return fmt.Appendf(nil, "%04x%s0000", len(line)+4, line)
		}
		const size = 65 << 20
		header := map[string]string{"Content-Type": "application/x-git-receive-pack-request"}
		push := ask{name: "a large push", login: "oauth2", password: token, path: "/olga/p.git/git-receive-pack", header: header,
			body: append(command("second"), closePack(addEntry(t, packOf(1), 3, size, nil, zeros(size)))...)}
		push.status = 200
		push.check(t, s)

		// The first push stalls halfway.
		body, rest := io.Pipe()
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		r, err := http.NewRequestWithContext(ctx, "POST", s.URL+push.path, body)
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth("oauth2", token)
		r.Header.Set("Content-Type", header["Content-Type"])
		done := make(chan struct{})
		go func() {
			defer close(done)
			if answer, err := http.DefaultClient.Do(r); err == nil {
				_ = answer.Body.Close()
			}
		}()
		if _, err := rest.Write(append(command("first"), addEntry(t, packOf(2), 3, size, nil, zeros(size))...)); err != nil {
			t.Fatal(err)
		}
		waittest.For(t, "the first push", func() bool { return s.Git.LargePushes().Held() == 1 })
		push.status, push.text = 503, "The server is busy with other large pushes."
		if answer := push.send(t, s); answer.Status != 503 || !strings.Contains(string(answer.Body), push.text) || answer.Header.Get("Retry-After") == "" {
			t.Errorf("the second push: %d, %v, %s", answer.Status, answer.Header, answer.Body)
		}
		small := push
		small.name, small.status, small.text = "a small push", 200, "unpack ok"
		small.body = append(command("small"), closePack(addEntry(t, packOf(1), 3, 5, nil, strings.NewReader("small")))...)
		small.check(t, s)

		leave()
		_ = rest.Close()
		waittest.Receive(t, "the end of the first push", done)
		waittest.For(t, "its slot", func() bool { return s.Git.LargePushes().Held() == 0 })
		push.status, push.text = 200, "unpack ok"
		push.check(t, s)
	})
}

// TestPushAllocatesMemory pushes packs of a few bytes that declare objects of
// gigabytes. They must not be passed to git.
func TestPushAllocatesMemory(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, token := s.User(t, "olga")
		newProject(t, s, token, "p", "private")
		s.Check(t, apptest.Call{Do: "POST /projects/olga%2Fp/wikis", As: token, Status: 201, JSON: `{"title":"home","content":"text"}`})
		line := strings.Repeat("0", 40) + " " + strings.Repeat("1", 40) + " refs/heads/bomb\x00report-status"
		for _, path := range []string{"olga/p", "olga/p.wiki"} {
			for name, delta := range map[string]bool{"tree": false, "delta": true} {
				body := append([]byte("0073"+line+"0000"), bomb(delta)...)
				if len(line)+4 != 0x73 {
					t.Fatalf("%04x", len(line)+4)
				}
				ask{name: path + " " + name, login: "oauth2", password: token, path: "/" + path + ".git/git-receive-pack", body: body,
					header: map[string]string{"Content-Type": "application/x-git-receive-pack-request"},
					status: 200, text: "unpack object exceeds the maximum size of 536870912 bytes",
				}.check(t, s)
			}
		}
		// Each delta of a chain is within the limit of an object, but together they
		// exceed the limit of a pack.
		ask{name: "a chain of deltas", login: "oauth2", password: token, path: "/olga/p.git/git-receive-pack", body: append([]byte("0073"+line+"0000"), deltaChain(t, 20)...),
			header: map[string]string{"Content-Type": "application/x-git-receive-pack-request"},
			status: 200, text: "unpack pack expands to too much data; push fewer commits at a time",
		}.check(t, s)
		// The limit is a setting: without it, git gets the pack.
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200, JSON: `{"receive_max_object_size":0}`})
		ask{login: "oauth2", password: token, path: "/olga/p.git/git-receive-pack", body: append([]byte("0073"+line+"0000"), bomb(false)...),
			header: map[string]string{"Content-Type": "application/x-git-receive-pack-request"},
			status: 200, text: "unpack unpack-objects abnormal exit",
		}.check(t, s)
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200, JSON: `{"receive_max_object_size":1}`,
			Want: `{"receive_max_object_size":1}`})
		ask{login: "oauth2", password: token, path: "/olga/p.git/git-receive-pack", body: append([]byte("0073"+line+"0000"), bomb(true)...),
			header: map[string]string{"Content-Type": "application/x-git-receive-pack-request"},
			status: 200, text: "unpack object exceeds the maximum size of 1048576 bytes",
		}.check(t, s)
	})
}
