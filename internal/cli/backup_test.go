package cli_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/app"
	"svc/internal/app/apptest"
	"svc/internal/backup"
	"svc/internal/blob"
	"svc/internal/blob/blobtest"
	"svc/internal/config"
	"svc/internal/db/dbtest"
	"svc/internal/errs"
	"svc/internal/git/gittest"
	"svc/internal/imageproxy"
)

// place has the directories and URLs of the data of an instance.
type place struct{ data, url, blobs, second, external string }

// bucket returns the URL of the object store of an instance on PostgreSQL; an
// instance on SQLite stores objects in files.
func bucket(t *testing.T, src dbtest.Source) string {
	t.Helper()
	if src.URL == "" {
		return ""
	}
	return blobtest.S3(t)
}

// secondOf returns the second storage: in the bucket on PostgreSQL, a directory on
// SQLite.
func secondOf(t *testing.T, src dbtest.Source) string {
	t.Helper()
	if src.URL == "" {
		return t.TempDir()
	}
	return config.OwnBucket
}

// configure sets the object store and the second storage.
func (p place) configure(c *config.Config) {
	c.BlobURL = config.SecretURL(p.blobs)
	c.Storages["second"] = p.second
	if p.second == config.OwnBucket {
		c.Buckets = map[string]config.SecretURL{"second": config.OwnBucket}
		c.Storages["second"] = filepath.Join(c.DataDir, "git-cache", "second")
	}
}

func (p place) env() []string {
	return []string{"SVC_DATA_DIR=" + p.data, "SVC_DATABASE_URL=" + p.url, "SVC_BLOB_URL=" + p.blobs, "SVC_STORAGES=second=" + p.second, "SVC_EXTERNAL_URL=" + p.external, "SVC_ADDR=127.0.0.1:0"}
}

// TestBackup makes a backup of a running server while data is written, and restores
// it on each kind of database. The restored server must give the same responses.
func TestBackup(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		templates := t.TempDir() + "-templates"
		from := place{url: src.URL, blobs: bucket(t, src), second: secondOf(t, src)}
		s := apptest.Start(t, src, from.configure)
		s.Clock.Stop() // logs are packed a minute after the end of a job, which is visible in responses
		f := fill(t, s)
		from.data, from.external = s.Config.DataDir, s.URL
		for _, name := range []string{"ssh/ssh_host_ed25519_key", "ci_templates/deep/Own.gitlab-ci.yml"} { // files that other tools create
			if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(from.data, name)), 0o700), os.WriteFile(filepath.Join(from.data, name), []byte(name), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(os.Rename(filepath.Join(from.data, "ci_templates"), templates), os.Symlink(templates, filepath.Join(from.data, "ci_templates"))); err != nil {
			t.Fatal(err)
		}
		const cached = imageproxy.Prefix + "ab/cd" // caches are not in backups
		if _, err := s.Blobs.Put(t.Context(), cached, strings.NewReader("x"), blob.Options{}); err != nil {
			t.Fatal(err)
		}
		checkDataDir(t, from.data)
		file := filepath.Join(t.TempDir(), "backup.tar")
		stop := f.busy(t)
		out := ok(t, from.env(), "", "backup", file)
		for _, want := range []string{file + " contains the instance as of ", "  repositories  ", "  database  "} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in\n%s", want, out)
			}
		}
		if n := stop(); n < 2 {
			t.Errorf("only %d rounds of writes during the backup", n)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Error(info, err)
		}
		if out := ok(t, nil, "", "backup", "--verify", file); !strings.Contains(out, "is complete") {
			t.Error(out)
		}
		if code, _, errOut := run(t, from.env(), "", "backup", file); code != 1 || !strings.Contains(errOut, "already exists") {
			t.Errorf("backup to an existing file: %d %s", code, errOut)
		}
		var want []string
		for _, q := range f.questions {
			want = append(want, answerOf(t, s, q))
		}
		dbtest.EachEmpty(t, func(t *testing.T, src dbtest.Source) {
			to := place{filepath.Join(t.TempDir(), "data"), src.URL, bucket(t, src), secondOf(t, src), s.URL}
			if out := ok(t, to.env(), "", "restore", file); !strings.Contains(out, "Restored the instance as of ") {
				t.Error(out)
			}
			if code, _, errOut := run(t, to.env(), "", "restore", file); code != 1 || !strings.Contains(errOut, "is not empty") {
				t.Errorf("second restore: %d %s", code, errOut)
			}
			ok(t, to.env(), "", "doctor", "--repositories")
			for _, name := range []string{"secret.key", "ssh/ssh_host_ed25519_key", "ci_templates/deep/Own.gitlab-ci.yml"} {
				sameFile(t, filepath.Join(from.data, name), filepath.Join(to.data, name))
			}
			there := apptest.Start(t, dbtest.Source{URL: to.url}, func(c *config.Config) {
				c.DataDir, c.ExternalURL = to.data, s.URL
				c.Storages = map[string]string{"default": filepath.Join(to.data, "repositories")}
				to.configure(c)
			})
			if info, err := there.Blobs.Stat(t.Context(), cached); !errs.Is(err, errs.KindNotFound) {
				t.Errorf("a cached image was restored: %v, %v", info, err)
			}
			there.Clock.Move(2 * time.Minute)
			for i, q := range f.questions {
				if got := answerOf(t, there, q); got != want[i] {
					at := 0
					for at < min(len(got), len(want[i])) && got[at] == want[i][at] {
						at++
					}
					at = max(0, at-100)
					t.Errorf("%s:\ngot  %.300s\nwant %.300s", q.Do, got[at:], want[i][at:])
				}
			}
			for _, table := range []string{"error_events", "alerts"} {
				if got, want := countOf(t, there, table), countOf(t, s, table); got != want {
					t.Errorf("%d rows of %s, want %d", got, table, want)
				}
			}
			checkBusy(t, s, there, f.bob)
			address := strings.Replace(there.URL, "http://", "http://alice:"+f.alice+"@", 1) + "/alice/p.git"
			clone := filepath.Join(t.TempDir(), "clone")
			gittest.Run(t, t.TempDir(), "clone", "-q", address, clone)
			gittest.Run(t, clone, "push", "-q", address, "HEAD:refs/heads/pushed")
		})
	})
}

// answerOf returns the body of a successful response, without the time and the last
// use of tokens, which change during the test.
func answerOf(t *testing.T, s *apptest.Server, q apptest.Call) string {
	t.Helper()
	a := s.Send(t, q)
	if a.Status != 200 {
		t.Errorf("%s: %d %s", q.Do, a.Status, a.Body)
	}
	return regexp.MustCompile(`"(local_time|last_used_at|contacted_at)":"[^"]*"`).ReplaceAllString(string(a.Body), "")
}

func countOf(t *testing.T, s *apptest.Server, table string) (n int) {
	t.Helper()
	if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM `+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func sameFile(t *testing.T, one, other string) {
	t.Helper()
	a, err := os.ReadFile(one)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(other)
	if err != nil || string(a) != string(b) {
		t.Errorf("%s and %s differ: %v", one, other, err)
	}
	if info, err := os.Stat(other); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

// checkDataDir fails if the data directory has an entry that the test does not know.
// Whoever adds one decides whether backups must include it; see app.dataFiles.
func checkDataDir(t *testing.T, dir string) {
	t.Helper()
	inBackup := []string{"secret.key", "ssh", "ci_templates", "logs", "blobs", "repositories", "svc.db"}
	notInBackup := []string{"svc.db-wal", "svc.db-shm", "svc.db.lock", "serve.lock", "secret.key.lock", "tmp", "pages", "git-cache"}
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if !slices.Contains(inBackup, e.Name()) && !slices.Contains(notInBackup, e.Name()) {
			t.Errorf("unknown entry %s in the data directory: add it here, and to app.dataFiles if backups need it", e.Name())
		}
	}
}

// checkBusy checks that s, a restored copy of source, has all objects that its
// database refers to, except attachments that were uploaded after the first listing
// of objects and deleted before the second.
func checkBusy(t *testing.T, source, s *apptest.Server, bob string) {
	t.Helper()
	var projects []struct {
		ID   int64
		Path string
	}
	s.Check(t, apptest.Call{Do: "GET /projects?owned=true&per_page=100&order_by=id&sort=asc", As: bob, Status: 200}).JSON(t, &projects)
	if len(projects) == 0 || projects[0].Path != "busy" {
		t.Fatalf("%+v", projects)
	}
	for _, p := range projects {
		if a := s.Send(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/repository/tree", p.ID), As: bob}); a.Status != 200 && a.Status != 404 {
			t.Errorf("%s: %d %s", p.Path, a.Status, a.Body)
		}
	}
	at := fmt.Sprintf("/projects/%d", projects[0].ID)
	var commits []struct{ ID string }
	var events []struct {
		Data struct {
			To string `json:"commit_to"`
		} `json:"push_data"`
	}
	s.Check(t, apptest.Call{Do: "GET " + at + "/repository/commits", As: bob, Status: 200}).JSON(t, &commits)
	s.Check(t, apptest.Call{Do: "GET " + at + "/events?action=pushed", As: bob, Status: 200}).JSON(t, &events)
	if len(commits) == 0 || len(events) == 0 || commits[0].ID != events[0].Data.To {
		t.Errorf("the repository has the commits %.200v, the database knows the pushes %.200v", commits, events)
	}
	var uploads []struct{ ID int64 }
	s.Check(t, apptest.Call{Do: "GET " + at + "/uploads", As: bob, Status: 200}).JSON(t, &uploads)
	for _, u := range uploads {
		file := apptest.Call{Do: fmt.Sprintf("GET %s/uploads/%d", at, u.ID), As: bob}
		if kept := source.Send(t, file).Status == 200; kept || s.Send(t, file).Status != 404 {
			file.Status = 200
			s.Check(t, file)
		}
	}
}

// TestRestoreRefuses checks that a failed restore leaves no data behind.
func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	from := []string{"SVC_DATA_DIR=" + t.TempDir()}
	good := filepath.Join(t.TempDir(), "good.tar")
	ok(t, from, "", "migrate")
	ok(t, from, "", "admin", "create-user", "alice", "--email", "alice@example.org")
	ok(t, from, "", "backup", good)
	text, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	damaged := slices.Clone(text)
	damaged[strings.Index(string(text), "\x1f\x8b")+20] ^= 1 // in the first table
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"truncated":                {text[:len(text)/2], "truncated"},
		"damaged":                  {damaged, "damaged"},
		"no backup":                {[]byte("hello"), "not a backup"},
		"a table that is not JSON": {changed(t, good, "database", "users.ndjson.gz", func(string) string { return "x" }), "users.ndjson.gz"},
		"a row that refers nowhere": {changed(t, good, "database", "stars.ndjson.gz", func(text string) string {
			return text + "[1,2,3]\n"
		}), "load: "},
		"something unknown": {changed(t, good, "data", "svc.db", nil), "does not know this file"},
		"no bundle":         {changed(t, good, "repositories", "default/x.git.bundle", nil), "read bundle"},
		"another storage":   {changed(t, good, "repositories", "other/x.git.bundle", nil), "not a repository of a storage"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused := func(t *testing.T, src dbtest.Source) {
				file, data := filepath.Join(t.TempDir(), "bad.tar"), filepath.Join(t.TempDir(), "data")
				if err := os.WriteFile(file, c.file, 0o600); err != nil {
					t.Fatal(err)
				}
				env := []string{"SVC_DATA_DIR=" + data, "SVC_DATABASE_URL=" + src.URL}
				code, _, errOut := run(t, env, "", "restore", file)
				if code != 1 || !strings.Contains(errOut, c.want) {
					t.Errorf("exit %d: %s", code, errOut)
				}
				if list, err := os.ReadDir(data); err == nil {
					t.Errorf("files were left behind: %v", list)
				}
				if src.URL != "" {
					if err := src.Open(t).Empty(t.Context()); err != nil {
						t.Error(err)
					}
				}
			}
			if name == "a row that refers nowhere" {
				dbtest.EachEmpty(t, refused)
				return
			}
			refused(t, dbtest.Source{})
		})
	}
	t.Run("places", func(t *testing.T) {
		t.Parallel()
		restoreIntoPlaces(t, good)
	})
	t.Run("interrupted", func(t *testing.T) {
		t.Parallel()
		dbtest.EachEmpty(t, func(t *testing.T, src dbtest.Source) { interruptRestore(t, src, good) })
	})
}

// interruptRestore cancels a restore at different steps and checks that no data is
// left.
func interruptRestore(t *testing.T, src dbtest.Source, good string) {
	dir := t.TempDir()
	cfg := config.Config{DataDir: filepath.Join(dir, "data"), DatabaseURL: config.SecretURL(src.URL), Storages: map[string]string{"default": filepath.Join(dir, "repositories")}}
	moments := []string{"database: users", "database: access_tokens", "checking"}
	if src.URL != "" {
		moments = moments[:1] // the others are similar, and slow
	}
	for _, at := range moments {
		ctx, stop := context.WithCancel(t.Context())
		_, err := app.Restore(ctx, cfg, good, func(format string, args ...any) {
			if strings.HasPrefix(fmt.Sprintf(format, args...), at) {
				stop()
			}
		})
		stop()
		if !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "could not be removed") {
			t.Errorf("%s: %v", at, err)
		}
		if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
			t.Errorf("%s: files were left behind: %v %v", at, list, err)
		}
		if src.URL != "" {
			if err := src.Open(t).Empty(t.Context()); err != nil {
				t.Errorf("%s: %v", at, err)
			}
		}
	}
}

// restoreIntoPlaces restores into directories that are not empty.
func restoreIntoPlaces(t *testing.T, good string) {
	data, second := t.TempDir(), t.TempDir()
	env := []string{"SVC_DATA_DIR=" + data, "SVC_STORAGES=second=" + second}
	put := func(name string) (remove func()) {
		t.Helper()
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		return func() { os.Remove(name) }
	}
	// Directories may exist, for example as mount points of disks.
	for _, dir := range []string{filepath.Join(data, "repositories", "lost+found"), filepath.Join(data, "lost+found")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{filepath.Join(data, "secret.key"), filepath.Join(second, "x"), filepath.Join(data, "repositories", "y")} {
		remove := put(name)
		if code, _, errOut := run(t, env, "", "restore", good); code != 1 || !strings.Contains(errOut, "is not empty: it contains "+name) {
			t.Errorf("%s: exit %d: %s", name, code, errOut)
		}
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
		remove()
	}
	ok(t, env, "", "restore", good)
	if out := ok(t, env, "", "admin", "list-users"); !strings.Contains(out, "alice") {
		t.Error(out)
	}
	// An interrupted restore must not be served.
	remove := put(filepath.Join(data, "restore.incomplete"))
	for _, args := range [][]string{{"admin", "list-users"}, {"restore", good}} {
		if code, _, errOut := run(t, env, "", args...); code != 1 || !strings.Contains(errOut, "was interrupted") {
			t.Errorf("%s: exit %d: %s", args, code, errOut)
		}
	}
	remove()
	// The key must exist if the backup does not contain it.
	keyless, elsewhere := filepath.Join(t.TempDir(), "keyless.tar"), t.TempDir()
	ok(t, env, "", "backup", "--without-key", keyless)
	env[0] = "SVC_DATA_DIR=" + elsewhere
	if code, _, errOut := run(t, env, "", "restore", keyless); code != 1 || !strings.Contains(errOut, "copy it to ") {
		t.Errorf("exit %d: %s", code, errOut)
	}
	key, err := os.ReadFile(filepath.Join(data, "secret.key"))
	if err == nil {
		err = os.WriteFile(filepath.Join(elsewhere, "secret.key"), key, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	ok(t, env, "", "restore", keyless)
	ok(t, env, "", "doctor")
	// Standard output has only the backup.
	code, out, errOut := run(t, env, "", "backup", "-")
	if code != 0 || !strings.HasPrefix(out, "svc-backup") || !strings.Contains(errOut, "The backup contains") {
		t.Errorf("exit %d: %s", code, errOut)
	}
}

// changed returns a backup with an additional entry or, if change is not nil, with
// another content of a table.
func changed(t *testing.T, file, dir, name string, change func(string) string) []byte {
	t.Helper()
	in, err := backup.Open(file, app.BackupParts(), func(int64, int64) {})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var out bytes.Buffer
	w, err := backup.NewWriter(&out, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, part := range app.BackupParts() {
		err := in.Each(part, func(e backup.Entry, in io.Reader) error {
			if change != nil && part == dir && e.Name == name {
				return w.AddFrom(path.Join(part, e.Name), func(w io.Writer) (backup.Meta, error) {
					z, err := gzip.NewReader(in)
					if err != nil {
						return nil, err
					}
					text, err := io.ReadAll(z)
					if err != nil {
						return nil, err
					}
					other, pack := change(string(text)), gzip.NewWriter(w)
					_, err = io.WriteString(pack, other)
					return backup.Meta{"size": fmt.Sprint(len(other))}, errors.Join(err, pack.Close())
				})
			}
			return w.Add(path.Join(part, e.Name), e.Size, e.Meta, in)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if change == nil {
		err = w.Add(path.Join(dir, name), 1, backup.Meta{"branch": "main"}, strings.NewReader("x"))
	}
	if err = errors.Join(err, w.Finish(&in.Manifest)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
