package sshd_test

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/git"
)

// TestBusy lets a client occupy the only slot. The next client gets an error that
// the server is busy.
func TestBusy(t *testing.T) {
	t.Parallel()
	apptest.EachWith(t, apptest.Options{Git: git.Limits{Transfers: 1, Wait: time.Second}}, func(t *testing.T, s *apptest.Server) {
		_, token, signer := userWithKey(t, s, "olga")
		s.Check(t, apptest.Call{Do: "POST /projects", As: token, Status: 201, JSON: `{"name":"p","initialize_with_readme":true}`})
		c := connect(t, s, signer)
		first, err := c.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		defer first.Close()
		in, err := first.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := first.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := first.Start("git-upload-pack '/olga/p.git'"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, 4)); err != nil { // git waits for the client
			t.Fatal(err)
		}
		_, said, err := run(t, c, "git-upload-pack '/olga/p.git'")
		if err == nil || !strings.HasPrefix(said, "ERROR: The server is busy with other git transfers.") {
			t.Errorf("%v, %q", err, said)
		}
		if _, err := io.WriteString(in, "0000"); err != nil {
			t.Fatal(err)
		}
		if err := first.Wait(); err != nil {
			t.Error(err)
		}
		if _, said, err := run(t, c, "git-upload-pack '/olga/p.git'"); err != nil {
			t.Errorf("%v, %q", err, said)
		}
	}, apptest.SSH)
}

// TestSilentFetch starts a fetch and sends nothing, or stops halfway. The slot is
// released after a while, with the connection still open.
func TestSilentFetch(t *testing.T) {
	t.Parallel()
	apptest.EachWith(t, apptest.Options{Git: git.Limits{Transfers: 1, Wait: 5 * time.Minute}, SSHSilence: 50 * time.Millisecond}, func(t *testing.T, s *apptest.Server) {
		_, token, signer := userWithKey(t, s, "olga")
		s.Check(t, apptest.Call{Do: "POST /projects", As: token, Status: 201, JSON: `{"name":"p","initialize_with_readme":true}`})
		c := connect(t, s, signer)
		for _, begun := range []string{"", "0032want 1111"} {
			session, err := c.NewSession()
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			in, err := session.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			var said bytes.Buffer
			session.Stderr = &said
			if err := session.Start("git-upload-pack '/olga/p.git'"); err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(in, begun) // the session may have ended
			if err := session.Wait(); err == nil || said.String() != "ERROR: The client sent nothing for too long.\n" {
				t.Errorf("%q: %v, %q", begun, err, said.String())
			}
		}
		if _, said, err := run(t, connect(t, s, signer), "git-upload-archive '/olga/p.git'"); err == nil || strings.Contains(said, "busy") {
			t.Errorf("%v, %q", err, said)
		}
	}, apptest.SSH)
}

// TestPushAllocatesMemory pushes a delta of a few bytes that declares a result of 2
// GiB.
func TestPushAllocatesMemory(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, token, signer := userWithKey(t, s, "olga")
		s.Check(t, apptest.Call{Do: "POST /projects", As: token, Status: 201, JSON: `{"name":"p","initialize_with_readme":true}`})
		delta := append(binary.AppendUvarint(binary.AppendUvarint(nil, 5), 2<<30), 1, 'x')
		var pack bytes.Buffer
		pack.WriteString("PACK\x00\x00\x00\x02\x00\x00\x00\x01")
		pack.WriteByte(7<<4 | byte(len(delta)))
		pack.Write(make([]byte, 20))
		z := zlib.NewWriter(&pack)
		_, _ = z.Write(delta)
		_ = z.Close()
		sum := sha1.Sum(pack.Bytes())
		pack.Write(sum[:])
		line := strings.Repeat("0", 40) + " " + strings.Repeat("1", 40) + " refs/heads/bomb\x00report-status"
		session, err := connect(t, s, signer).NewSession()
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		session.Stdin = strings.NewReader(fmt.Sprintf("%04x%s0000%s", len(line)+4, line, pack.String()))
		out, _ := session.Output("git-receive-pack '/olga/p.git'")
		if want := "unpack object exceeds the maximum size of 536870912 bytes"; !strings.Contains(string(out), want) {
			t.Errorf("%q, want %q", out, want)
		}
	}, apptest.SSH)
}
