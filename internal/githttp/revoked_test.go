package githttp_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/git/gittest"
	"svc/internal/git/pktline"
	"svc/internal/project"
	"svc/internal/user"
)

// TestRightsEndDuringPush checks that a push that has begun does not move a ref after the
// right to push has ended.
func TestRightsEndDuringPush(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		bob, _ := s.User(t, "bob")
		var made struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /projects", As: apptest.RootToken, JSON: `{"name":"p","visibility":"private"}`, Status: 201}).JSON(t, &made)
		work := gittest.New(t)
		tip := work.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "a", Content: "a"}}})
		cmd := gittest.Command(work.Path, "pack-objects", "--stdout", "--revs", "-q")
		cmd.Stdin = strings.NewReader(tip + "\n")
		pack, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		member := fmt.Sprintf("/projects/%d/members", made.ID)
		join := apptest.Call{Do: "POST " + member, As: apptest.RootToken, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":40}`, bob), Status: 201}
		for i, c := range []struct {
			name       string
			meanwhile  []apptest.Call
			afterwards []apptest.Call
			want       string
		}{
			{"removed", []apptest.Call{{Do: fmt.Sprintf("DELETE %s/%d", member, bob), Status: 204}}, []apptest.Call{join}, "not allowed to push any more"},
			{"archived", []apptest.Call{{Do: fmt.Sprintf("POST /projects/%d/archive", made.ID), Status: 201}},
				[]apptest.Call{{Do: fmt.Sprintf("POST /projects/%d/unarchive", made.ID), Status: 201}}, "not allowed to push any more"},
			{"blocked", []apptest.Call{{Do: fmt.Sprintf("POST /users/%d/block", bob), Status: 201}},
				[]apptest.Call{{Do: fmt.Sprintf("POST /users/%d/unblock", bob), Status: 201}}, "not allowed to push any more"},
			{"nothing", nil, nil, "ok refs/heads/b-3"},
		} {
			if i == 0 {
				s.Check(t, join)
			}
			by, err := s.Users.Become(t.Context(), actor.System(), user.Ref("bob"))
			if err != nil {
				t.Fatal(err)
			}
			pushing, err := s.Repos.Push(t.Context(), by, project.RefTo(made.ID))
			if err != nil {
				t.Fatal(err)
			}
			for _, call := range c.meanwhile {
				call.As = apptest.RootToken
				s.Check(t, call)
			}
			in := pktline.Append(nil, fmt.Sprintf("%s %s refs/heads/b-%d\x00report-status", git.ZeroOID, tip, i))
			var out bytes.Buffer
			err = pushing.ReceivePack(t.Context(), bytes.NewReader(append(pktline.AppendFlush(in), pack...)), &out, git.ServeOptions{Stateless: true})
			if err != nil || !strings.Contains(out.String(), c.want) {
				t.Errorf("%s: %v, %q", c.name, err, out.String())
			}
			for _, call := range c.afterwards {
				call.As = apptest.RootToken
				s.Check(t, call)
			}
		}
		// The same for a wiki.
		by, err := s.Users.Become(t.Context(), actor.System(), user.Ref("bob"))
		if err != nil {
			t.Fatal(err)
		}
		pushing, err := s.Repos.Push(t.Context(), by, "root/p.wiki")
		if err != nil {
			t.Fatal(err)
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE %s/%d", member, bob), As: apptest.RootToken, Status: 204})
		in := pktline.Append(nil, fmt.Sprintf("%s %s refs/heads/main\x00report-status", git.ZeroOID, tip))
		var out bytes.Buffer
		if err := pushing.ReceivePack(t.Context(), bytes.NewReader(append(pktline.AppendFlush(in), pack...)), &out, git.ServeOptions{Stateless: true}); err != nil || !strings.Contains(out.String(), "not allowed to push any more") {
			t.Errorf("wiki: %v, %q", err, out.String())
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/repository/branches", made.ID), As: apptest.RootToken, Status: 200, Want: `[{"name":"b-3"}]`})
	})
}

// TestRightsEndDuringFetch checks that a client that stays connected gets no refs after the
// right to read has ended.
func TestRightsEndDuringFetch(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		bob, _ := s.User(t, "bob")
		var made struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /projects", As: apptest.RootToken, JSON: `{"name":"p","visibility":"private","initialize_with_readme":true}`, Status: 201}).JSON(t, &made)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/members", made.ID), As: apptest.RootToken, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":30}`, bob), Status: 201})
		by, err := s.Users.Become(t.Context(), actor.System(), user.Ref("bob"))
		if err != nil {
			t.Fatal(err)
		}
		fetching, err := s.Repos.Fetch(t.Context(), by, project.RefTo(made.ID))
		if err != nil {
			t.Fatal(err)
		}
		in, ask := io.Pipe()
		answer, out := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			err := fetching.UploadPack(t.Context(), in, out, git.ServeOptions{Protocol: "version=2"})
			out.Close()
			ended <- err
		}()
		lines := func() (list []string) {
			t.Helper()
			for {
				line, kind, err := pktline.ReadLine(answer)
				if err == io.EOF || err == nil && kind == pktline.Flush {
					return list
				}
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, line)
			}
		}
		list := func() []string {
			t.Helper()
			if _, err := ask.Write([]byte("0014command=ls-refs\n00010000")); err != nil {
				t.Fatal(err)
			}
			return lines()
		}
		lines() // the capabilities
		for range 2 {
			if got := list(); len(got) != 2 || !strings.HasSuffix(got[1], " refs/heads/main") {
				t.Fatalf("the refs are %q", got)
			}
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE /projects/%d/members/%d", made.ID, bob), As: apptest.RootToken, Status: 204})
		if got := list(); len(got) != 1 || !strings.HasPrefix(got[0], "ERR ") {
			t.Errorf("after the right has ended, the refs are %q", got)
		}
		if err := <-ended; !errs.Is(err, errs.KindNotFound) {
			t.Errorf("the fetch ended with %v", err)
		}
	})
}
