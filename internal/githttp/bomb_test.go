package githttp_test

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// bomb makes a pack of one entry that declares more than it has: a tree of 2 GiB
// or, as a delta on an object, a result of that size.
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

// TestPushAllocatesMemory pushes packs of some bytes that declare objects of
// gigabytes. Git must not see them.
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
		// The limit is a setting: without it git gets the pack.
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
