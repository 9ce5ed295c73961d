package sshd_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/project"
	"svc/internal/sshd"
	"svc/internal/user"
	"svc/internal/waittest"
)

// key generates a key pair for a client.
func key(t *testing.T) (ssh.Signer, string) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
}

// userWithKey creates a user with an SSH key.
func userWithKey(t *testing.T, s *apptest.Server, name string) (id int64, token string, signer ssh.Signer) {
	t.Helper()
	id, token = s.User(t, name)
	signer, line := key(t)
	if _, err := s.Users.AddKey(t.Context(), actor.System(), id, user.NewKey{Title: "k", Key: line}); err != nil {
		t.Fatal(err)
	}
	return id, token, signer
}

func dial(addr string, auth ...ssh.AuthMethod) (*ssh.Client, error) {
	return ssh.Dial("tcp", addr, &ssh.ClientConfig{User: "git", Auth: auth, HostKeyCallback: ssh.InsecureIgnoreHostKey(), Timeout: 5 * time.Minute})
}

func connect(t *testing.T, s *apptest.Server, signer ssh.Signer) *ssh.Client {
	t.Helper()
	c, err := dial(s.SSHAddr(), ssh.PublicKeys(signer))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// run runs a command, whose input is a flush packet, and returns its output.
func run(t *testing.T, c *ssh.Client, line string) (out, said string, err error) {
	t.Helper()
	session, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	var o, e bytes.Buffer
	session.Stdin, session.Stdout, session.Stderr = strings.NewReader("0000"), &o, &e
	err = session.Run(line)
	return o.String(), e.String(), err
}

// TestRoles checks read and write access of each role to projects of each
// visibility.
func TestRoles(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, owner, ownerKey := userWithKey(t, s, "olga")
		for _, v := range []string{"private", "internal", "public"} {
			s.Check(t, apptest.Call{Do: "POST /projects", As: owner, Status: 201, JSON: fmt.Sprintf(`{"name":%q,"visibility":%q,"initialize_with_readme":true}`, v, v)})
		}
		keys := map[string]ssh.Signer{"owner": ownerKey}
		_, _, keys["outsider"] = userWithKey(t, s, "otto")
		for level, name := range map[int]string{10: "guest", 20: "reporter", 30: "developer"} {
			id, _, signer := userWithKey(t, s, name)
			keys[name] = signer
			for _, v := range []string{"private", "internal", "public"} {
				s.Check(t, apptest.Call{Do: "POST /projects/olga%2F" + v + "/members", As: owner, Status: 201, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":%d}`, id, level)})
			}
		}
		for name, push := range map[string]bool{"reading key": false, "writing key": true} {
			signer, line := key(t)
			keys[name] = signer
			if _, err := s.Projects.AddDeployKey(t.Context(), actor.System(), "olga/private", project.NewDeployKey{Title: name, Key: line, CanPush: push}); err != nil {
				t.Fatal(err)
			}
		}
		s.Check(t, apptest.Call{Do: "POST /project_aliases", As: apptest.RootToken, Status: 201, JSON: `{"project_id":"olga/private","name":"tool"}`})
		const ok, no, unseen = "", "ERROR: You are not allowed", "ERROR: The project does not exist"
		const byKey = "ERROR: This deploy key does not have write access"
		for who, want := range map[string][3][2]string{
			//             private           internal            public
			"outsider":    {{unseen, unseen}, {ok, no}, {ok, no}},
			"guest":       {{no, no}, {ok, no}, {ok, no}},
			"reporter":    {{ok, no}, {ok, no}, {ok, no}},
			"developer":   {{ok, ok}, {ok, ok}, {ok, ok}},
			"owner":       {{ok, ok}, {ok, ok}, {ok, ok}},
			"reading key": {{ok, byKey}, {unseen, unseen}, {ok, no}},
			"writing key": {{ok, ok}, {unseen, unseen}, {ok, no}},
		} {
			c := connect(t, s, keys[who])
			for i, path := range []string{"olga/private", "olga/internal", "olga/public", "tool", "none"} {
				want := append(want[:], want[0], [2]string{unseen, unseen}) // an alias has the rights of its project
				for j, service := range []string{"git-upload-pack", "git-receive-pack"} {
					out, said, err := run(t, c, service+" '/"+path+".git'")
					if (err == nil) != (want[i][j] == ok) || !strings.HasPrefix(said, want[i][j]) {
						t.Errorf("%s, %s of %s: %v, %q, want %q", who, service, path, err, said, want[i][j])
					}
					if want[i][j] == ok && !strings.Contains(out, "refs/heads/main") {
						t.Errorf("%s, %s of %s: %q", who, service, path, out)
					}
				}
			}
		}
	}, apptest.SSH)
}

// TestSessions checks what a connection allows besides git.
func TestSessions(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, token, signer := userWithKey(t, s, "alice")
		s.Check(t, apptest.Call{Do: "POST /projects", As: token, Status: 201, JSON: `{"name":"p","visibility":"private","initialize_with_readme":true}`})
		c := connect(t, s, signer)

		session, err := c.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		if session.RequestPty("xterm", 24, 80, nil) == nil {
			t.Error("a terminal was given")
		}
		if session.Setenv("LD_PRELOAD", "x") == nil {
			t.Error("any variable is taken")
		}
		if err := session.Setenv("GIT_PROTOCOL", "version=2"); err != nil {
			t.Errorf("GIT_PROTOCOL: %v", err)
		}
		var out bytes.Buffer
		session.Stdin, session.Stdout = strings.NewReader("0000"), &out
		if err := session.Run("git-upload-pack 'alice/p.git'"); err != nil || !strings.Contains(out.String(), "version 2") {
			t.Errorf("version 2: %v %q", err, out.String())
		}
		if _, err := c.Dial("tcp", s.Addr()); err == nil {
			t.Error("a port was forwarded")
		}
		if _, err := c.Listen("tcp", "127.0.0.1:0"); err == nil {
			t.Error("a port was forwarded back")
		}

		// At most ten sessions are open at once. A slot is released a little after
		// its session has ended for the client, hence the new connections.
		c = connect(t, s, signer)
		var open []*ssh.Session
		for range 10 {
			session, err := c.NewSession()
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, session)
		}
		if _, err := c.NewSession(); err == nil {
			t.Error("an eleventh session was opened")
		}
		for _, session := range open {
			session.Close()
		}
		c = connect(t, s, signer)

		// The key is authenticated for each command, not once.
		keys, err := s.Users.OwnKeys(t.Context(), actor.Actor{ID: id, Username: "alice"}, firstPage())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(s.Log(), `"fingerprint":"`+keys.Items[0].SHA256+`"`) || !strings.Contains(s.Log(), `"msg":"ssh"`) {
			t.Error("the log does not name the key")
		}
		if err := s.Users.DeleteKey(t.Context(), actor.System(), id, keys.Items[0].ID); err != nil {
			t.Fatal(err)
		}
		if _, said, err := run(t, c, "git-upload-pack 'alice/p.git'"); err == nil || !strings.Contains(said, "not accepted any more") {
			t.Errorf("after the key was removed: %v %q", err, said)
		}
		counted := s.Send(t, apptest.Call{Do: "GET //-/metrics"})
		if line := `svc_git_requests_total{outcome="ok",protocol="ssh",service="git-upload-pack"}`; !strings.Contains(string(counted.Body), line) {
			t.Errorf("%s is not counted", line)
		}
	}, apptest.SSH)
}

// TestConnectionsOfAccount checks that one account cannot take all connections.
func TestConnectionsOfAccount(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, dbtest.SQLite(t), apptest.SSH)
	_, _, alice := userWithKey(t, s, "alice")
	_, _, bob := userWithKey(t, s, "bob")
	opens := func(signer ssh.Signer) (*ssh.Client, bool) {
		c := connect(t, s, signer)
		session, err := c.NewSession()
		if err == nil {
			session.Close()
		}
		return c, err == nil
	}
	var first *ssh.Client
	for i := range 250 {
		c, ok := opens(alice)
		if !ok {
			t.Fatalf("connection %d was refused", i+1)
		}
		if first == nil {
			first = c
		}
	}
	if _, ok := opens(alice); ok {
		t.Error("alice has 251 connections")
	}
	if _, ok := opens(bob); !ok {
		t.Error("bob has none")
	}
	first.Close()
	waittest.For(t, "a connection again", func() bool {
		_, ok := opens(alice)
		return ok
	})
}

// TestSignIn tries to sign in other than with the key of a user.
func TestSignIn(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, _ := s.User(t, "alice")
		stranger, _ := key(t)
		signing, line := key(t)
		if _, err := s.Users.AddKey(t.Context(), actor.System(), id, user.NewKey{Title: "s", Key: line, Usage: user.SigningKey}); err != nil {
			t.Fatal(err)
		}
		for name, auth := range map[string][]ssh.AuthMethod{
			"nothing":     nil,
			"password":    {ssh.Password("a good password")},
			"unknown key": {ssh.PublicKeys(stranger)},
			"signing key": {ssh.PublicKeys(signing)},
		} {
			if c, err := dial(s.SSHAddr(), auth...); err == nil {
				c.Close()
				t.Errorf("%s was let in", name)
			}
		}
		// A client that sends nothing is disconnected, and others can sign in
		// meanwhile.
		var silent []net.Conn
		for range 30 {
			c, err := net.Dial("tcp", s.SSHAddr())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			silent = append(silent, c)
		}
		refused := 0
		for _, c := range silent {
			if n, err := io.ReadAtLeast(c, make([]byte, 64), 1); n == 0 && err == io.EOF {
				refused++
			}
		}
		if refused < 10 {
			t.Errorf("%d of 30 silent connections from one address were refused, want 10", refused)
		}
	}, apptest.SSH)
}

// TestShutdown stops a server while a client runs a command: the command finishes,
// and no new one is started.
func TestShutdown(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, token, signer := userWithKey(t, s, "alice")
		s.Check(t, apptest.Call{Do: "POST /projects", As: token, Status: 201, JSON: `{"name":"p","visibility":"private","initialize_with_readme":true}`})
		keys, err := sshd.HostKeys(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		server := sshd.New(sshd.Deps{
			Users: s.Users, Projects: s.Projects, Repos: s.Repos, HostKeys: keys, Name: "svc", Log: s.Server.Log,
			Trace: func(ctx context.Context) context.Context { return ctx }, Count: func(string, string) {},
			Limits: sshd.Limits{LastCommand: time.Hour},
		})
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- server.Serve(l) }()

		idle, err := dial(l.Addr().String(), ssh.PublicKeys(signer))
		if err != nil {
			t.Fatal(err)
		}
		used, err := idle.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		used.Stdin = strings.NewReader("0000")
		if err := used.Run("git-upload-pack 'alice/p.git'"); err != nil {
			t.Fatal(err)
		}
		busy, err := dial(l.Addr().String(), ssh.PublicKeys(signer))
		if err != nil {
			t.Fatal(err)
		}
		late := halfOpen(t, l.Addr().String())
		session, err := busy.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		in, err := session.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := session.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := session.Start("git-upload-pack 'alice/p.git'"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, 4)); err != nil {
			t.Fatal(err)
		}
		stopped := make(chan error, 1)
		var finishing atomic.Bool
		go func() {
			err := server.Shutdown(t.Context())
			if !finishing.Load() {
				t.Error("Shutdown did not wait for the command")
			}
			stopped <- err
		}()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		// A client that was signing in finishes with one command.
		if err := late.run(signer, "git-upload-pack 'alice/p.git'"); err != nil {
			t.Errorf("the client that was signing in: %v", err)
		}
		if err := idle.Wait(); err == nil {
			t.Error("the idle connection ended without an error")
		}
		finishing.Store(true)
		if _, err := io.WriteString(in, "0000"); err != nil {
			t.Error(err)
		}
		in.Close()
		_, _ = io.Copy(io.Discard, out)
		if err := session.Wait(); err != nil {
			t.Errorf("the command that was running: %v", err)
		}
		if err := <-stopped; err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
}

// halfOpenConn is a connection that the server has accepted and that has not signed
// in.
type halfOpenConn struct {
	net.Conn
	in *bufio.Reader
}

// Read implements net.Conn.
func (c *halfOpenConn) Read(p []byte) (int, error) { return c.in.Read(p) }

func halfOpen(t *testing.T, addr string) *halfOpenConn {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	c := &halfOpenConn{nc, bufio.NewReader(nc)}
	if _, err := c.in.Peek(4); err != nil { // the server has sent its version
		t.Fatal(err)
	}
	return c
}

// run signs in and runs a command without input.
func (c *halfOpenConn) run(signer ssh.Signer, command string) error {
	conn, channels, requests, err := ssh.NewClientConn(c, "", &ssh.ClientConfig{
		User: "git", Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
	})
	if err != nil {
		return err
	}
	session, err := ssh.NewClient(conn, channels, requests).NewSession()
	if err != nil {
		return err
	}
	session.Stdin = strings.NewReader("0000")
	return session.Run(command)
}

// TestHostKeys creates keys once, and refuses key files that others can read.
func TestHostKeys(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "ssh")
	first, err := sshd.HostKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	again, err := sshd.HostKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(first) != 2 || len(again) != 2 {
		t.Fatalf("%d keys, then %d", len(first), len(again))
	}
	for i := range first {
		if !bytes.Equal(first[i].PublicKey().Marshal(), again[i].PublicKey().Marshal()) {
			t.Errorf("key %d is another one", i)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v %v", f.Name(), info.Mode(), err)
		}
	}
	if len(files) != 2 {
		t.Errorf("%d files are left, want 2", len(files))
	}

	// A key that the operator adds is also used.
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	writeKey(t, filepath.Join(dir, "ssh_host_rsa_key"), private)
	if keys, err := sshd.HostKeys(dir); err != nil || len(keys) != 3 {
		t.Errorf("%d keys with one of RSA: %v", len(keys), err)
	}
	if err := os.Chmod(filepath.Join(dir, "ssh_host_rsa_key"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := sshd.HostKeys(dir); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a key that everybody can read: %v", err)
	}
}

func writeKey(t *testing.T, path string, private any) {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
}

func firstPage() db.Paging { return db.Paging{Limit: 20} }

// TestDeployKeyOfBlockedUser checks that a deploy key cannot push while the account of
// its creator is not active.
func TestDeployKeyOfBlockedUser(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, Status: 201, JSON: `{"name":"work","initialize_with_readme":true}`})
		s.Check(t, apptest.Call{Do: "POST /projects/alice%2Fwork/members", As: alice, Status: 201, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":40}`, bobID)})
		robot, line := key(t)
		s.Check(t, apptest.Call{Do: "POST /projects/alice%2Fwork/deploy_keys", As: bob, Status: 201, JSON: fmt.Sprintf(`{"title":"Robot","key":%q,"can_push":true}`, line)})
		shared, line := key(t)
		var public struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /deploy_keys", As: apptest.RootToken, Status: 201, JSON: fmt.Sprintf(`{"title":"Shared","key":%q}`, line)}).JSON(t, &public)
		if _, err := s.DB.ExecContext(t.Context(), `UPDATE deploy_keys SET created_by = ? WHERE id = ?`, bobID, public.ID); err != nil {
			t.Fatal(err)
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/alice%%2Fwork/deploy_keys/%d/enable", public.ID), As: alice, Status: 201})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/alice%%2Fwork/deploy_keys/%d", public.ID), As: alice, Status: 200, JSON: `{"can_push":true}`})
		check := func(state string, signer ssh.Signer, push bool) {
			t.Helper()
			c := connect(t, s, signer)
			if _, said, err := run(t, c, "git-upload-pack '/alice/work.git'"); err != nil {
				t.Errorf("%s: fetch: %v, %q", state, err, said)
			}
			_, said, err := run(t, c, "git-receive-pack '/alice/work.git'")
			if (err == nil) != push || !push && !strings.HasPrefix(said, "ERROR: The account that created this deploy key is not active.") {
				t.Errorf("%s: push: %v, %q", state, err, said)
			}
		}
		check("active", robot, true)
		for _, state := range []struct{ off, on string }{{"block", "unblock"}, {"ban", "unban"}} {
			s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /users/%d/%s", bobID, state.off), As: apptest.RootToken, Status: 201})
			check(state.off, robot, false)
			check(state.off, shared, true)
			s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /users/%d/%s", bobID, state.on), As: apptest.RootToken, Status: 201})
			check(state.on, robot, true)
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE /users/%d", bobID), As: apptest.RootToken, Status: 204})
		s.Settled(t)
		check("deleted", robot, false)
	}, apptest.SSH)
}
