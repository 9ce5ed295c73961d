// Package gittest creates repositories for tests with git fast-import.
package gittest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Repo is a bare repository in a directory of the test.
type Repo struct {
	Path string
	// Around is called for each use of the repository, and must call run; may be nil.
	Around func(run func())
	t      testing.TB
}

func (r *Repo) use(run func()) {
	if r.Around == nil {
		run()
		return
	}
	r.Around(run)
}

// New returns an empty bare repository whose HEAD is main.
func New(t testing.TB) *Repo {
	t.Helper()
	r := &Repo{Path: filepath.Join(t.TempDir(), "repo.git"), t: t}
	Run(t, "", "init", "-q", "--bare", "--initial-branch=main", "--template=", r.Path)
	return r
}

// At returns a helper for an existing repository.
func At(t testing.TB, path string) *Repo { return &Repo{Path: path, t: t} }

// Git runs git in the repository and returns its trimmed output. The test ends if git
// fails.
func (r *Repo) Git(args ...string) string {
	r.t.Helper()
	var out string
	r.use(func() { out = Run(r.t, r.Path, args...) })
	return out
}

// Env returns the environment of the helpers: no user configuration, and a fixed identity
// and time.
func Env() []string {
	return append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "LC_ALL=C", "TZ=UTC",
		"GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=gc.auto", "GIT_CONFIG_VALUE_0=0",
		"GIT_AUTHOR_NAME=Ann Author", "GIT_AUTHOR_EMAIL=ann@example.com", "GIT_AUTHOR_DATE=1700000000 +0200",
		"GIT_COMMITTER_NAME=Cole Committer", "GIT_COMMITTER_EMAIL=cole@example.com", "GIT_COMMITTER_DATE=1700000100 +0000")
}

// Command returns a git command in a directory, with the environment of Env.
func Command(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = Env()
	return cmd
}

// Run runs git in a directory and returns its trimmed output. The test ends if git fails.
func Run(t testing.TB, dir string, args ...string) string {
	t.Helper()
	return RunInput(t, dir, nil, args...)
}

// RunInput is Run with standard input.
func RunInput(t testing.TB, dir string, in io.Reader, args ...string) string {
	t.Helper()
	cmd := Command(dir, args...)
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, said.String())
	}
	return strings.TrimSpace(out.String())
}

// Change is a change to a path in a commit.
type Change struct {
	Path    string
	Content string
	Mode    string // default: 100644
	Delete  bool
}

// Commit is a commit to create. Empty fields have default values.
type Commit struct {
	Branch  string // main
	Parents []string
	Root    bool // has no parent, though the branch exists
	Author  string
	Seconds int64 // of author and committer; 1700000000 when 0
	Message string
	Changes []Change
}

// Commit creates a commit on a branch and returns its ID. The first parent is the tip of the
// branch, if it exists, unless Parents names others.
func (r *Repo) Commit(c Commit) string {
	r.t.Helper()
	var b bytes.Buffer
	branch := c.Branch
	if branch == "" {
		branch = "main"
	}
	ref := "refs/heads/" + branch
	if len(c.Parents) == 0 && !c.Root {
		if tip := r.Tip(ref); tip != "" {
			c.Parents = []string{tip}
		}
	}
	writeCommit(&b, ref, c)
	r.Import(&b)
	return r.Tip(ref)
}

// Tip returns the ID of a ref; empty if the ref does not exist.
func (r *Repo) Tip(ref string) string {
	var out []byte
	var err error
	r.use(func() { out, err = Command(r.Path, "rev-parse", "--verify", "-q", ref).Output() })
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// Import passes a stream to git fast-import.
func (r *Repo) Import(stream io.Reader) {
	r.t.Helper()
	r.use(func() {
		RunInput(r.t, r.Path, stream, "fast-import", "--quiet", "--force", "--date-format=raw-permissive")
	})
}

func writeCommit(b *bytes.Buffer, ref string, c Commit) {
	author := c.Author
	if author == "" {
		author = "Ann Author <ann@example.com>"
	}
	seconds := c.Seconds
	if seconds == 0 {
		seconds = 1700000000
	}
	message := c.Message
	if message == "" {
		message = "Change things\n"
	}
	if len(c.Parents) == 0 {
		fmt.Fprintf(b, "reset %s\n", ref)
	}
	fmt.Fprintf(b, "commit %s\nauthor %s %d +0200\ncommitter Cole Committer <cole@example.com> %d +0000\n", ref, author, seconds, seconds)
	fmt.Fprintf(b, "data %d\n%s\n", len(message), message)
	for i, p := range c.Parents {
		fmt.Fprintf(b, "%s %s\n", map[bool]string{true: "from", false: "merge"}[i == 0], p)
	}
	for _, ch := range c.Changes {
		if ch.Delete {
			fmt.Fprintf(b, "D %s\n", quote(ch.Path))
			continue
		}
		mode := ch.Mode
		if mode == "" {
			mode = "100644"
		}
		if mode == "160000" {
			fmt.Fprintf(b, "M 160000 %s %s\n", ch.Content, quote(ch.Path))
			continue
		}
		fmt.Fprintf(b, "M %s inline %s\ndata %d\n%s\n", mode, quote(ch.Path), len(ch.Content), ch.Content)
	}
	b.WriteString("\n")
}

// quote quotes a path for fast-import.
func quote(path string) string {
	r := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	return `"` + r.Replace(path) + `"`
}

// Object stores an object of any type and content, valid or not, and returns its ID.
func (r *Repo) Object(kind, content string) string {
	r.t.Helper()
	var id string
	r.use(func() {
		id = RunInput(r.t, r.Path, strings.NewReader(content), "hash-object", "-w", "--stdin", "--literally", "-t", kind)
	})
	return id
}
