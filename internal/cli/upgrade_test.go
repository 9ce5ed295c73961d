package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"svc/internal/app"
	"svc/internal/cli"
	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/waittest"
)

// newerMigrations writes migrations of a later release: one that is compatible with
// this release, and one that removes something that this release uses.
func newerMigrations(t *testing.T, know int64) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{
		"9001_topic_color.sql": fmt.Sprintf("-- +goose Up\n-- oldest: %04d\nALTER TABLE topics ADD COLUMN color TEXT NOT NULL DEFAULT '';\n", know),
		"9002_index.sql":       fmt.Sprintf("-- +goose Up\n-- oldest: %04d\nCREATE INDEX CONCURRENTLY issues_test ON issues (created_at);\n", know),
		"9003_topic_gone.sql":  "-- +goose Up\n-- oldest: 9001\n-- phase: post\nALTER TABLE topics DROP COLUMN color;\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// upgradeNode is a server that the test replaces.
type upgradeNode struct {
	address string
	process *exec.Cmd
	using   sync.WaitGroup
}

// balancer sends requests to its nodes in turn.
type balancer struct {
	mu     sync.Mutex
	nodes  []*upgradeNode
	turn   int
	served map[*upgradeNode]int
	faults []string
}

func (b *balancer) ask(ctx context.Context, method, path, body string) (int, string) {
	b.mu.Lock()
	b.turn++
	n := b.nodes[b.turn%len(b.nodes)]
	n.using.Add(1)
	b.mu.Unlock()
	defer n.using.Done()
	status, text := ask(ctx, method, n.address+"/api/v4"+path, body)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.served[n]++
	if (status == 0 || status >= 400) && ctx.Err() == nil {
		b.faults = append(b.faults, fmt.Sprintf("%s %s: %d %s", method, path, status, text))
	}
	return status, text
}

func (b *balancer) add(n *upgradeNode) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.nodes = append(b.nodes, n)
}

// remove removes a node from the load balancer, as a failing readiness check does,
// and stops it.
func (b *balancer) remove(t *testing.T, n *upgradeNode) {
	t.Helper()
	b.mu.Lock()
	b.nodes = slices.DeleteFunc(b.nodes, func(one *upgradeNode) bool { return one == n })
	b.mu.Unlock()
	n.using.Wait()
	end(t, n.process)
}

// await waits until each node has served some more requests.
func (b *balancer) await(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	before := map[*upgradeNode]int{}
	for _, n := range b.nodes {
		before[n] = b.served[n]
	}
	b.mu.Unlock()
	waittest.For(t, "responses of all nodes", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		for n, was := range before {
			if b.served[n] < was+10 {
				return false
			}
		}
		return true
	})
}

// TestRollingUpgrade replaces nodes one by one with those of a newer release, and
// back, under load. No request may fail and no change may be lost. UPGRADE_FROM is
// the binary of an older release to upgrade from; by default this release is the
// older one, and the newer one has additional migrations.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	dbtest.EachEmpty(t, func(t *testing.T, src dbtest.Source) {
		if src.URL != "" { // SQLite supports one node only
			rollingUpgrade(t, src)
		}
	})
}

func rollingUpgrade(t *testing.T, src dbtest.Source) {
	d := src.Open(t)
	_, know, err := d.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"SVC_DATA_DIR=" + t.TempDir(), "SVC_DATABASE_URL=" + src.URL}
	newEnv := env
	older := os.Getenv("UPGRADE_FROM")
	if older == "" {
		newEnv = append(slices.Clip(env), "SVC_TEST_MIGRATIONS="+newerMigrations(t, know))
	}
	startOld := func() *upgradeNode {
		t.Helper()
		n := &upgradeNode{}
		n.address, n.process = serveWith(t, oldServer(older, env))
		return n
	}
	startNew := func() *upgradeNode {
		t.Helper()
		n := &upgradeNode{}
		n.address, n.process = serve(t, newEnv)
		return n
	}

	b := &balancer{served: map[*upgradeNode]int{}}
	one, two := startOld(), startOld()
	b.add(one)
	b.add(two)
	project := fmt.Sprintf("/projects/%d", makeProject(t, one.address, "upgraded"))

	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	var mu sync.Mutex
	var acknowledged []string
	for w := range 2 {
		load.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				title := fmt.Sprintf("issue %d-%d", w, i)
				if status, _ := b.ask(ctx, "POST", project+"/issues", `{"title":"`+title+`"}`); status == http.StatusCreated {
					mu.Lock()
					acknowledged = append(acknowledged, title)
					mu.Unlock()
				}
				b.ask(ctx, "GET", project+"/issues?per_page=20", "")
				b.ask(ctx, "GET", "/topics", "")
			}
		})
	}
	b.await(t)

	b.remove(t, one)
	one = startNew()
	b.add(one)
	b.await(t)
	if older == "" {
		// A background job of a kind that only newer nodes know stays in the queue.
		if _, err := d.SQL().Exec(`INSERT INTO river_job (kind, args, max_attempts, priority, queue, state, metadata) VALUES ('newer.work', '{}', 3, 1, 'default', 'available', '{}')`); err != nil {
			t.Fatal(err)
		}
	}
	back := older == "" || canGoBack(t, older, env)
	if back {
		b.remove(t, two)
		two = startOld() // on the schema of the newer release
		b.add(two)
		b.await(t)
		if older == "" {
			if code, out := migratePost(newEnv); code == 0 || !strings.Contains(out, "nodes of an older release are running") {
				t.Errorf("post-deployment migrations while an older node runs: %d %s", code, out)
			}
		}
		b.remove(t, one)
		one = startOld()
		b.add(one)
		b.await(t)
		b.remove(t, one)
		one = startNew()
		b.add(one)
	}
	b.remove(t, two)
	two = startNew()
	b.add(two)
	b.await(t)
	if older == "" {
		if code, out := migratePost(newEnv); code != 0 || !strings.Contains(out, "9003_topic_gone") {
			t.Errorf("post-deployment migrations: %d %s", code, out)
		}
		b.await(t)
		var errOut bytes.Buffer
		refused := oldServer("", env)
		refused.Stderr = &errOut
		if err := refused.Run(); err == nil || !strings.Contains(errOut.String(), "run a newer release") {
			t.Errorf("an older node on an incompatible schema: %v %s", err, &errOut)
		}
		tried, err := db.All(t.Context(), d, db.Value[int64], `SELECT attempt FROM river_job WHERE kind = 'newer.work'`)
		if err != nil || len(tried) != 1 || tried[0] != 0 {
			t.Errorf("a job of an unknown kind was tried %v times, %v", tried, err)
		}
	}
	stop()
	load.Wait()

	for _, fault := range b.faults[:min(len(b.faults), 10)] {
		t.Error(fault)
	}
	titles, err := db.All(t.Context(), d, db.Value[string], `SELECT title FROM issues`)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, title := range titles {
		count[title]++
	}
	for _, title := range acknowledged {
		if count[title] != 1 {
			t.Errorf("%s exists %d times", title, count[title])
		}
	}
	t.Logf("%d issues acknowledged, %d requests failed, back: %v", len(acknowledged), len(b.faults), back)
	end(t, one.process)
	end(t, two.process)
}

// oldServer returns the command of a server of the older release: of a binary, or of
// this release.
func oldServer(binary string, env []string) *exec.Cmd {
	cmd := server(env)
	if binary != "" {
		cmd = exec.Command(binary, "serve")
		cmd.Env = server(env).Env
	}
	return cmd
}

// canGoBack reports whether the older release can start on the newer schema.
func canGoBack(t *testing.T, older string, env []string) bool {
	t.Helper()
	cmd := exec.Command(older, "doctor")
	cmd.Env = server(env).Env
	out, _ := cmd.CombinedOutput() // other checks may fail
	t.Logf("the older release says: %s", out)
	return !strings.Contains(string(out), "newer") || strings.Contains(string(out), "may run beside")
}

// migratePost runs svc migrate --post as the newer release.
func migratePost(env []string) (code int, out string) {
	var text bytes.Buffer
	o := app.Options{}
	for _, line := range env {
		if dir, ok := strings.CutPrefix(line, "SVC_TEST_MIGRATIONS="); ok {
			o.Migrations = os.DirFS(dir)
		}
	}
	code = cli.MainWith(o, []string{"migrate", "--post"}, env, strings.NewReader(""), &text, &text)
	return code, text.String()
}

// TestDowngrade starts an older release on SQLite with the schema of a newer one.
func TestDowngrade(t *testing.T) {
	t.Parallel()
	src := dbtest.SQLite(t)
	_, know, err := src.Open(t).Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"SVC_DATA_DIR=" + filepath.Dir(src.Path), "SVC_DATABASE_URL="}
	address, process := serve(t, append(slices.Clip(env), "SVC_TEST_MIGRATIONS="+newerMigrations(t, know)))
	made := makeProject(t, address, "kept")
	end(t, process)
	address, process = serve(t, env)
	status, text := ask(t.Context(), "GET", fmt.Sprintf("%s/api/v4/projects/%d", address, made), "")
	var p struct{ Name string }
	if err := json.Unmarshal([]byte(text), &p); err != nil || status != http.StatusOK || p.Name != "kept" {
		t.Errorf("%d %s", status, text)
	}
	end(t, process)
}
