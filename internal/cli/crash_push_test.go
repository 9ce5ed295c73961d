package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"svc/internal/db/dbtest"
	"svc/internal/git/gittest"
	"svc/internal/waittest"
)

// pushes records the pushes. Each is to a separate branch, so that its result can be
// identified.
type pushes struct {
	tried        atomic.Int64
	mu           sync.Mutex
	acknowledged map[string]string // commit by "project branch"
	unknown      map[string]string
}

// push pushes until the server is killed.
func (p *pushes) push(ctx context.Context, work, tree, remote, project, name string) {
	for i := 0; ctx.Err() == nil; i++ {
		branch := fmt.Sprintf("%s-%d", name, i)
		made, err := gittest.Command(work, "commit-tree", "-m", branch, tree).Output()
		if err != nil {
			return // the test then times out
		}
		commit := strings.TrimSpace(string(made))
		p.tried.Add(1)
		err = gittest.Command(work, "push", "-q", remote, commit+":refs/heads/"+branch).Run()
		p.mu.Lock()
		if err == nil {
			p.acknowledged[project+" "+branch] = commit
		} else {
			p.unknown[project+" "+branch] = commit
		}
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// TestKilledPushes kills the server during a hundred pushes, with or without its git
// processes. Acknowledged pushes must exist and be recorded once, the repositories
// must not be damaged, and later pushes must succeed.
func TestKilledPushes(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		data := t.TempDir()
		env := []string{"SVC_DATA_DIR=" + data, "SVC_DATABASE_URL=" + src.URL}
		p := &pushes{acknowledged: map[string]string{}, unknown: map[string]string{}}
		var works []string
		tree := ""
		for range 4 {
			work := gittest.New(t)
			tree = work.Git("hash-object", "-t", "tree", "-w", "/dev/null")
			works = append(works, work.Path)
		}
		projects := map[string]int64{"one": 0, "two": 0}
		const rounds, total = 5, 100
		for round := range rounds {
			address, process := serve(t, env)
			if round == 0 {
				for name := range projects {
					projects[name] = makeProject(t, address, name)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			var pushers sync.WaitGroup
			for w, work := range works {
				pushers.Go(func() {
					project := []string{"one", "two"}[w%2]
					p.push(ctx, work, tree, remote(address, project), project, fmt.Sprintf("r%d-w%d", round, w))
				})
			}
			// Kill the server while pushes are running.
			waittest.For(t, "enough pushes are tried", func() bool { return p.tried.Load() >= int64((round+1)*total/rounds) })
			if err := process.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			if round%2 == 1 {
				killIn(data)
			}
			_ = process.Wait()
			cancel()
			pushers.Wait()
		}
		t.Logf("%d pushes acknowledged, %d interrupted", len(p.acknowledged), len(p.unknown))

		address, process := serve(t, env)
		d := source(src, env).Open(t)
		there := map[string]string{}
		for name, id := range projects {
			dir := filepath.Join(data, "repositories", "projects", fmt.Sprintf("%02x", id%256), fmt.Sprintf("%d.git", id))
			if out, err := gittest.Command(dir, "fsck", "--full", "--strict").CombinedOutput(); err != nil {
				t.Errorf("%s is damaged: %v: %s", name, err, out)
			}
			for line := range strings.Lines(gittest.Run(t, dir, "for-each-ref", "--format=%(refname:short) %(objectname)")) {
				branch, commit, _ := strings.Cut(strings.TrimSpace(line), " ")
				there[name+" "+branch] = commit
			}
		}
		recorded := map[string]int{}
		rows, err := d.QueryContext(t.Context(), `SELECT p.path, e.push FROM activity_events e JOIN projects p ON p.id = e.project_id WHERE e.push <> ''`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var project, text string
			if err := rows.Scan(&project, &text); err != nil {
				t.Fatal(err)
			}
			var push struct{ Ref string }
			if err := json.Unmarshal([]byte(text), &push); err != nil {
				t.Fatal(err)
			}
			recorded[project+" "+push.Ref]++
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		for key, commit := range p.acknowledged {
			if there[key] != commit {
				t.Errorf("%s was acknowledged at %s but is at %q", key, commit, there[key])
			}
			if recorded[key] != 1 {
				t.Errorf("%s is recorded %d times", key, recorded[key])
			}
		}
		for key, commit := range p.unknown {
			switch {
			case there[key] != "" && there[key] != commit:
				t.Errorf("%s was pushed to %s but is at %s", key, commit, there[key])
			case recorded[key] > 1, recorded[key] == 1 && there[key] == "":
				t.Errorf("%s, whose push was interrupted, is recorded %d times and is at %q", key, recorded[key], there[key])
			// With several nodes, a push is recorded later, when no other node can
			// be running it.
			case src.URL == "" && there[key] != "" && recorded[key] != 1:
				t.Errorf("%s has moved and is recorded %d times", key, recorded[key])
			}
		}
		// Interrupted pushes can be repeated.
		if src.URL == "" {
			for _, key := range slices.Sorted(maps.Keys(p.unknown)) {
				project, branch, _ := strings.Cut(key, " ")
				if out, err := gittest.Command(workOf(works, branch), "push", "-q", "--force", remote(address, project), p.unknown[key]+":refs/heads/"+branch).CombinedOutput(); err != nil {
					t.Errorf("repeat the push of %s: %v: %s", key, err, out)
				}
			}
		}
		if err := process.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if err := process.Wait(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
}

func remote(address, project string) string {
	return strings.Replace(address, "http://", "http://root:"+crashToken+"@", 1) + "/root/" + project + ".git"
}

// workOf returns the work tree that a branch was pushed from.
func workOf(works []string, branch string) string {
	_, number, _ := strings.Cut(branch, "-w")
	number, _, _ = strings.Cut(number, "-")
	n, _ := strconv.Atoi(number)
	return works[n]
}

func makeProject(t *testing.T, address, name string) int64 {
	t.Helper()
	status, answer := ask(t.Context(), "POST", address+"/api/v4/projects", `{"name":"`+name+`"}`)
	var made struct{ ID int64 }
	if err := json.Unmarshal([]byte(answer), &made); err != nil || status != 201 {
		t.Fatalf("make project: %d %s %v", status, answer, err)
	}
	return made.ID
}

// killIn kills the processes whose working directory is below a directory, as a
// service manager does when it stops a service.
func killIn(dir string) {
	all, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, cwd := range all {
		at, err := os.Readlink(cwd)
		if err != nil || !strings.HasPrefix(at, dir+"/") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(cwd))); err == nil && pid != os.Getpid() {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return
			}
		}
	}
}
