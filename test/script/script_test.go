package script_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/crypto/ssh"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/blob/blobtest"
	"svc/internal/db/dbtest"
	"svc/internal/project"
	"svc/internal/user"
)

// TestScripts runs the scenarios that can share a server.
func TestScripts(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) { run(t, s, "testdata") }, apptest.SSH)
}

// TestSettings runs the scenarios that change settings of the instance.
func TestSettings(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) { run(t, s, "testdata/settings") }, apptest.SSH)
}

func run(t *testing.T, s *apptest.Server, dir string) {
	testscript.Run(t, params(s, testscript.Params{Dir: dir}))
}

// params adds the environment and the commands of the scripts.
func params(s *apptest.Server, p testscript.Params) testscript.Params {
	p.Setup, p.RequireUniqueNames = func(e *testscript.Env) error { return setup(s, e) }, true
	p.Cmds = map[string]func(*testscript.TestScript, bool, []string){
		"user":      command{s}.user,
		"as":        command{s}.as,
		"api":       command{s}.api,
		"deploykey": command{s}.deployKey,
		"twofactor": command{s}.twoFactor,
		"expirekey": command{s}.expireKey,
		"readonly":  command{s}.readOnly,
		"whole":     command{s}.whole,
		"sh":        command{s}.sh,
		"runner":    command{s}.runner,
		"take":      command{s}.take,
		"work":      command{s}.work,
		"fail":      command{s}.fail,
		"variable":  command{s}.variable,
		"pipeline":  command{s}.pipeline,
		"log":       command{s}.log,
		"tick":      command{s}.tick,
		"let":       command{s}.let,
		"is":        command{s}.is,
	}
	return p
}

// setup gives a script a clean environment, independent of the configuration of the
// machine.
func setup(s *apptest.Server, e *testscript.Env) error {
	e.Values["runner"] = &runner{}
	for name, value := range map[string]string{
		"HOME": e.WorkDir, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C",
		"GIT_AUTHOR_NAME": "Ann Author", "GIT_AUTHOR_EMAIL": "ann@example.org",
		"GIT_COMMITTER_NAME": "Ann Author", "GIT_COMMITTER_EMAIL": "ann@example.org",
		"URL": s.URL, "SSH": "ssh://git@" + s.SSHAddr(),
		"SSH_HOST": "127.0.0.1", "SSH_PORT": s.SSHAddr()[strings.LastIndexByte(s.SSHAddr(), ':')+1:],
	} {
		e.Setenv(name, value)
	}
	return os.WriteFile(filepath.Join(e.WorkDir, ".gitconfig"), []byte("[init]\n\tdefaultBranch = main\n[protocol \"file\"]\n\tallow = always\n[advice]\n\tdetachedHead = false\n"), 0o600)
}

// command has the additional commands of scripts.
type command struct{ *apptest.Server }

// user NAME creates a user with an SSH key. NAME is local to the script: the
// username is $NAME, the token is $NAME_token, the password is that of all test
// users, and the key is in $WORK/NAME.key.
func (c command) user(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: user NAME")
	}
	name := args[0]
	username := strings.NewReplacer("_", "-").Replace(ts.Name()) + "-" + name
	u, err := c.Users.Create(context.Background(), actor.System(), user.NewUser{
		Email: username + "@example.org", Name: name, Username: username, Password: "a good password", SkipConfirmation: true,
	})
	ts.Check(err)
	token, err := c.Users.CreateToken(context.Background(), actor.System(), u.ID, user.NewToken{Name: "script", Scopes: []string{"api"}})
	ts.Check(err)
	_, err = c.Users.AddKey(context.Background(), actor.System(), u.ID, user.NewKey{Title: name, Key: newKey(ts, name)})
	ts.Check(err)
	ts.Setenv(name, username)
	ts.Setenv(name+"_token", token.Secret)
	ts.Setenv(name+"_id", strconv.FormatInt(u.ID, 10))
}

// newKey writes a private key to NAME.key and returns the public key.
func newKey(ts *testscript.TestScript, name string) string {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	ts.Check(err)
	block, err := ssh.MarshalPrivateKey(private, "")
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(ts.Getenv("WORK")+"/"+name+".key"), pem.EncodeToMemory(block), 0o600))
	key, err := ssh.NewPublicKey(public)
	ts.Check(err)
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// as NAME selects the user for git: $HTTP is the URL of the server with the token of
// the user, and ssh uses the key of the user. "no one" has neither.
func (c command) as(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: as NAME")
	}
	name, work := args[0], ts.Getenv("WORK")
	ts.Setenv("me", name)
	ts.Setenv("HTTP", c.URL)
	if token := ts.Getenv(name + "_token"); token != "" {
		ts.Setenv("HTTP", "http://"+ts.Getenv(name)+":"+token+"@"+c.Addr())
	}
	line := "ssh -F none -o BatchMode=yes -o IdentitiesOnly=yes -o StrictHostKeyChecking=accept-new -o LogLevel=ERROR -o UserKnownHostsFile=" +
		work + "/known_hosts -i " + work + "/" + name + ".key"
	ts.Setenv("GIT_SSH_COMMAND", line)
	ts.Setenv("SSH_COMMAND", line+" -p "+ts.Getenv("SSH_PORT")+" git@"+ts.Getenv("SSH_HOST"))
}

// api NAME "METHOD /path" STATUS [JSON] sends a request below /api/v4 and prints the
// response.
func (c command) api(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 || len(args) > 4 {
		ts.Fatalf(`usage: api NAME "METHOD /path" STATUS [JSON]`)
	}
	body := ""
	if len(args) == 4 {
		body = args[3]
	}
	status, text := c.exchange(ts, args[0], args[1], body)
	fmt.Fprintln(ts.Stdout(), string(text))
	if fmt.Sprint(status) != args[2] {
		ts.Fatalf("%s: status %d, want %s: %s", args[1], status, args[2], text)
	}
}

// exchange sends a request below /api/v4 as a user or as root.
func (c command) exchange(ts *testscript.TestScript, name, do, body string) (status int, answer []byte) {
	method, path, _ := strings.Cut(do, " ")
	r, err := http.NewRequest(method, c.URL+"/api/v4"+path, strings.NewReader(body))
	ts.Check(err)
	r.Header.Set("Content-Type", "application/json")
	token := ts.Getenv(name + "_token")
	if name == "root" {
		token = apptest.RootToken
	}
	r.Header.Set("PRIVATE-TOKEN", token)
	res, err := http.DefaultClient.Do(r)
	ts.Check(err)
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	ts.Check(err)
	return res.StatusCode, answer
}

// deployKey NAME PROJECT read|write adds a deploy key to a project.
func (c command) deployKey(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: deploykey NAME PROJECT read|write")
	}
	_, err := c.Projects.AddDeployKey(context.Background(), actor.System(), project.Ref(args[1]),
		project.NewDeployKey{Title: args[0], Key: newKey(ts, args[0]), CanPush: args[2] == "write"})
	ts.Check(err)
}

// twoFactor NAME enables two-factor authentication for a user.
func (c command) twoFactor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: twofactor NAME")
	}
	id, err := strconv.ParseInt(ts.Getenv(args[0]+"_id"), 10, 64)
	ts.Check(err)
	_, err = c.Users.EnrollTwoFactor(context.Background(), actor.System(), id, "svc")
	ts.Check(err)
}

// expireKey NAME expires the SSH keys of a user.
func (c command) expireKey(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: expirekey NAME")
	}
	id, err := strconv.ParseInt(ts.Getenv(args[0]+"_id"), 10, 64)
	ts.Check(err)
	_, err = c.DB.ExecContext(context.Background(), `UPDATE ssh_keys SET expires_at = ? WHERE user_id = ?`, c.Clock.Now().Add(-time.Hour), id)
	ts.Check(err)
}

// readOnly PROJECT on|off makes a repository read-only, as during a storage move.
func (c command) readOnly(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: readonly PROJECT on|off")
	}
	_, err := c.DB.ExecContext(context.Background(), `UPDATE projects SET read_only = ? WHERE full_path = ?`, args[1] == "on", args[0])
	ts.Check(err)
}

// sh SCRIPT runs a command line in a shell, for pipes and word splitting.
func (c command) sh(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: sh SCRIPT")
	}
	err := ts.Exec("sh", "-c", args[0])
	if neg && err == nil {
		ts.Fatalf("it succeeded")
	}
	if !neg {
		ts.Check(err)
	}
}

// whole PROJECT checks the repository of a project on disk: git fsck finds no
// errors, and no push has left files behind.
func (c command) whole(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: whole PROJECT")
	}
	ts.Check(checkRepository(repositoryOf(c.Server, args[0])))
}

// repositoryOf returns the directory of the repository of a project.
func repositoryOf(s *apptest.Server, path string) string {
	var id int64
	if err := s.DB.QueryRowContext(context.Background(), `SELECT id FROM projects WHERE full_path = ?`, path).Scan(&id); err != nil {
		return "no project " + path
	}
	return filepath.Join(s.Config.Storages["default"], "projects", fmt.Sprintf("%02x", id%256), fmt.Sprintf("%d.git", id))
}

func checkRepository(dir string) error {
	cmd := exec.Command("git", "--git-dir="+dir, "fsck", "--full", "--strict", "--no-dangling")
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("git fsck: %w: %s", err, out)
	}
	var left []string
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && (strings.HasPrefix(d.Name(), "tmp_") || strings.HasSuffix(d.Name(), ".lock")) {
			left = append(left, path)
		}
		return err
	})
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("left behind: %v", left)
	}
	return err
}

// each runs a test that needs more than a script, with each kind of database.
func each(t *testing.T, f func(t *testing.T, s *apptest.Server)) {
	t.Helper()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) { f(t, apptest.Start(t, src, apptest.SSH)) })
}

// TestLFSOnS3 runs the scenario of Git LFS with direct transfers to and from S3.
func TestLFSOnS3(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, dbtest.SQLite(t), apptest.SSH, apptest.Bucket(blobtest.S3(t)))
	testscript.Run(t, params(s, testscript.Params{Files: []string{"testdata/lfs.txtar"}}))
}
