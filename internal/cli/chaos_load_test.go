package cli_test

import (
	"context"
	"crypto/ed25519"
	cryptorand "crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/ssh"

	"svc/internal/git/gittest"
	"svc/internal/waittest"
)

// gitRemote returns a git command for a project; it replaces the argument "URL" by
// the URL of the project.
type gitRemote func(dir, project string, args ...string) *exec.Cmd

func httpRemote(address string) gitRemote {
	return func(dir, project string, args ...string) *exec.Cmd {
		return gittest.Command(dir, withURL(args, remote(address, project))...)
	}
}

// sshRemote returns a gitRemote that connects to the nodes in turn over SSH.
func (b *chaosBalancer) sshRemote(t *testing.T) gitRemote {
	t.Helper()
	var turn atomic.Int64
	return b.sshRemoteAt(t, func() string {
		n := b.nodes[int(turn.Add(1))%len(b.nodes)]
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.ssh
	})
}

// sshRemoteAt returns a gitRemote that connects to an address over SSH, with a new key.
func (b *chaosBalancer) sshRemoteAt(t *testing.T, address func() string) gitRemote {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key")
	public, private, err := ed25519.GenerateKey(cryptorand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err == nil {
		err = os.WriteFile(key, pem.EncodeToMemory(block), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	body := fmt.Sprintf(`{"title":"k","key":%q}`, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(line))))
	if status, text := ask(t.Context(), "POST", b.nodes[0].at()+"/api/v4/user/keys", body); status != http.StatusCreated {
		t.Fatalf("key: %d %s", status, text)
	}
	return func(dir, project string, args ...string) *exec.Cmd {
		cmd := gittest.Command(dir, withURL(args, "ssh://git@"+address()+"/root/"+project+".git")...)
		// A frozen node accepts connections but sends nothing.
		cmd.Env = append(cmd.Env, "GIT_SSH_COMMAND=ssh -F none -o BatchMode=yes -o IdentitiesOnly=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"+
			" -o LogLevel=ERROR -o ConnectTimeout=5 -o ServerAliveInterval=5 -o ServerAliveCountMax=2 -i "+key)
		return cmd
	}
}

func withURL(args []string, address string) []string {
	args = slices.Clone(args)
	for i, arg := range args {
		if arg == "URL" {
			args[i] = address
		}
	}
	return args
}

// firstCommit creates the branch main of a project.
func firstCommit(t *testing.T, address string, project int64) {
	t.Helper()
	body := `{"branch":"main","commit_message":"first","actions":[{"action":"create","file_path":"first","content":"x"}]}`
	if status, text := ask(t.Context(), "POST", fmt.Sprintf("%s/api/v4/projects/%d/repository/commits", address, project), body); status != http.StatusCreated {
		t.Fatalf("commit: %d %s", status, text)
	}
}

// merge creates branches with a commit each, and merges them.
func (l *ledger) merge(ctx context.Context) {
	for i := 0; l.goesOn(ctx); i++ {
		branch, commit := l.branch(ctx, i)
		if branch == "" {
			return
		}
		for ; l.goesOn(ctx); waittest.Pause() {
			request := l.request(ctx, branch)
			if request.State == "merged" {
				l.mu.Lock()
				l.merged[request.IID] = commit
				l.mu.Unlock()
				l.visible(ctx, fmt.Sprintf("/projects/%d/merge_requests/%d", l.merges, request.IID), `"state":"merged"`)
				break
			}
			// The response is ignored: the next iteration reads the state of the
			// merge request.
			if request.IID != 0 {
				ask(ctx, "PUT", fmt.Sprintf("%s/api/v4/projects/%d/merge_requests/%d/merge", *l.address.Load(), l.merges, request.IID), "{}")
			}
		}
	}
}

// branch creates a branch with a commit. If the response was lost, it creates
// another branch.
func (l *ledger) branch(ctx context.Context, number int) (name, commit string) {
	for try := 0; l.goesOn(ctx); try++ {
		name := fmt.Sprintf("m%d-%d", number, try)
		body := fmt.Sprintf(`{"branch":%q,"start_branch":"main","commit_message":"go","actions":[{"action":"create","file_path":%q,"content":"x"}]}`, name, name)
		status, text := ask(ctx, "POST", fmt.Sprintf("%s/api/v4/projects/%d/repository/commits", *l.address.Load(), l.merges), body)
		var made struct{ ID string }
		if status == http.StatusCreated && json.Unmarshal([]byte(text), &made) == nil {
			return name, made.ID
		}
		if status != 0 && status < 500 && ctx.Err() == nil {
			l.fault("commit to %s: %d %s", name, status, text)
		}
		l.again.Add(1)
		waittest.Pause()
	}
	return "", ""
}

type chaosRequest struct {
	IID   int
	State string
}

// request returns the merge request of a branch, and creates it if necessary. The
// IID is 0 if there was no response.
func (l *ledger) request(ctx context.Context, branch string) chaosRequest {
	at := fmt.Sprintf("%s/api/v4/projects/%d/merge_requests", *l.address.Load(), l.merges)
	status, text := ask(ctx, "GET", at+"?source_branch="+url.QueryEscape(branch), "")
	var found []chaosRequest
	if status != http.StatusOK || json.Unmarshal([]byte(text), &found) != nil {
		l.again.Add(1)
		return chaosRequest{}
	}
	if len(found) > 0 {
		return found[0]
	}
	status, text = ask(ctx, "POST", at, fmt.Sprintf(`{"source_branch":%q,"target_branch":"main","title":%q}`, branch, branch))
	var made chaosRequest
	if status == http.StatusCreated && json.Unmarshal([]byte(text), &made) == nil {
		return made
	}
	if status != 0 && status != http.StatusConflict && status < 500 && ctx.Err() == nil {
		l.fault("merge request of %s: %d %s", branch, status, text)
	}
	l.again.Add(1)
	return chaosRequest{}
}

// clone clones the project of the pushes after every fifth push, and checks that
// earlier pushes are there.
func (l *ledger) clone(ctx context.Context, dir string, remotes ...gitRemote) {
	for known := 0; l.goesOn(ctx); waittest.Pause() {
		l.mu.Lock()
		pushed := maps.Clone(l.pushed)
		l.mu.Unlock()
		if len(pushed) < known+5 {
			continue
		}
		at := filepath.Join(dir, fmt.Sprint(len(pushed)))
		if remotes[l.cloned%len(remotes)](dir, "pushes", "clone", "-q", "--mirror", "URL", at).Run() != nil {
			l.again.Add(1)
		} else {
			known = len(pushed)
			l.cloned++
			for branch, commit := range pushed {
				if got, err := gittest.Command(at, "rev-parse", "refs/heads/"+branch).Output(); strings.TrimSpace(string(got)) != commit {
					l.fault("%s is at %q in a clone, %v, want %s", branch, got, err, commit)
				}
			}
		}
		_ = os.RemoveAll(at)
	}
}

// checkMerges checks that the target branch has each merge, and that each merge has
// one event.
func (l *ledger) checkMerges(t *testing.T, address string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "clone")
	gittest.Run(t, "", "clone", "-q", "--mirror", remote(address, "merges"), dir)
	if out, err := gittest.Command(dir, "fsck", "--full", "--strict").CombinedOutput(); err != nil {
		t.Errorf("the repository is damaged: %v: %s", err, out)
	}
	if len(l.merged) == 0 {
		t.Error("nothing was merged")
	}
	for iid, commit := range l.merged {
		if err := gittest.Command(dir, "merge-base", "--is-ancestor", commit, "refs/heads/main").Run(); err != nil {
			t.Errorf("merge request %d: %s is not in main: %v", iid, commit, err)
		}
		if n := l.count(t, `SELECT count(*) FROM merge_requests WHERE project_id = ? AND iid = ? AND state = 'merged'`, l.merges, iid); n != 1 {
			t.Errorf("merge request %d is not merged", iid)
		}
		if n := l.count(t, `SELECT count(*) FROM activity_events WHERE project_id = ? AND target_iid = ? AND action = 'merged'`, l.merges, iid); n != 1 {
			t.Errorf("merge request %d has %d events of its merge", iid, n)
		}
	}
}
