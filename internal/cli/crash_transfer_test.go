package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os/exec"
	"testing"

	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/waittest"
)

// TestKilledTransfer kills the server during an export, and during an import of an
// export file. Both must complete after the next start, and no data of the first
// attempt may be left.
func TestKilledTransfer(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		env := []string{"SVC_DATA_DIR=" + t.TempDir(), "SVC_DATABASE_URL=" + src.URL}
		address, process := serve(t, env)
		k := &mortal{t: t, env: env, address: address, process: process, db: source(src, env).Open(t)}
		const rows = 5000 // ten transactions
		var g struct{ ID int64 }
		k.ask("POST", "/groups", `{"name":"G","path":"g"}`, http.StatusCreated, &g)
		_, err := k.db.ExecContext(t.Context(), `WITH RECURSIVE t (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < ?)
			INSERT INTO labels (namespace_id, name, color, description, created_at, updated_at) SELECT CAST(? AS BIGINT), 'label ' || n, '#112233', '', n, n FROM t`, rows, g.ID)
		if err != nil {
			t.Fatal(err)
		}

		k.ask("POST", fmt.Sprintf("/groups/%d/export", g.ID), "", http.StatusAccepted, nil)
		k.until("the export begins", `SELECT count(*) FROM group_exports WHERE state <> 'queued'`, 1)
		k.again()
		k.until("the export is ready", `SELECT count(*) FROM group_exports WHERE state = 'finished'`, 1)
		status, file := ask(t.Context(), "GET", fmt.Sprintf("%s/api/v4/groups/%d/export/download", k.address, g.ID), "")
		if status != http.StatusOK {
			t.Fatalf("download: %d %.200s", status, file)
		}

		k.imports(file, "copy")
		k.until("the import has made something", `SELECT count(*) FROM labels l JOIN group_imports i ON i.namespace_id = l.namespace_id`, 1)
		k.again()
		k.until("the import is finished", `SELECT count(*) FROM group_imports WHERE state = 'finished'`, 1)
		for _, want := range []struct {
			what, query string
			n           int
		}{
			{"tries of the import", `SELECT tries FROM group_imports`, 2},
			{"labels of the copy", `SELECT count(*) FROM labels l JOIN namespaces n ON n.id = l.namespace_id WHERE n.full_path = 'copy'`, rows},
		} {
			if n := k.count(want.query); n != want.n {
				t.Errorf("%s: %d, want %d", want.what, n, want.n)
			}
		}
		// The data of the first attempt is deleted in the background.
		k.until("labels of the first attempt are deleted", fmt.Sprintf(`SELECT CASE WHEN count(*) = %d THEN 1 ELSE 0 END FROM labels`, 2*rows), 1)
		end(t, k.process)
	})
}

// mortal is a server that the test kills.
type mortal struct {
	t       *testing.T
	env     []string
	address string
	process *exec.Cmd
	db      *db.DB
}

// again kills the server and starts it again with the same data.
func (k *mortal) again() {
	k.t.Helper()
	if err := k.process.Process.Kill(); err != nil {
		k.t.Fatal(err)
	}
	_ = k.process.Wait()
	(&crash{db: k.db}).letPass(k.t)
	k.address, k.process = serve(k.t, k.env)
}

func (k *mortal) ask(method, path, body string, want int, to any) {
	k.t.Helper()
	status, answer := ask(k.t.Context(), method, k.address+"/api/v4"+path, body)
	if status != want {
		k.t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
	if to != nil {
		if err := json.Unmarshal([]byte(answer), to); err != nil {
			k.t.Fatal(err)
		}
	}
}

func (k *mortal) count(query string) (n int) {
	k.t.Helper()
	if err := k.db.QueryRowContext(k.t.Context(), query).Scan(&n); err != nil {
		k.t.Fatal(err)
	}
	return n
}

// until waits until a query returns at least n.
func (k *mortal) until(what, query string, n int) {
	k.t.Helper()
	waittest.For(k.t, what, func() bool { return k.count(query) >= n })
}

// imports uploads an export file to create a group.
func (k *mortal) imports(file, path string) {
	k.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	_ = form.WriteField("name", path)
	_ = form.WriteField("path", path)
	part, err := form.CreateFormFile("file", "export.tar.gz")
	if err != nil {
		k.t.Fatal(err)
	}
	_, _ = io.WriteString(part, file)
	_ = form.Close()
	r, err := http.NewRequestWithContext(k.t.Context(), http.MethodPost, k.address+"/api/v4/groups/import", &body)
	if err != nil {
		k.t.Fatal(err)
	}
	r.Header.Set("PRIVATE-TOKEN", crashToken)
	r.Header.Set("Content-Type", form.FormDataContentType())
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		k.t.Fatal(err)
	}
	defer res.Body.Close()
	if text, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusAccepted {
		k.t.Fatalf("import: %d %s", res.StatusCode, text)
	}
}
