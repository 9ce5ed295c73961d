package web_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/db/dbtest"
	"svc/internal/git/gittest"
)

// TestPageSizes checks that pages with much data transfer less than 50 KiB each.
func TestPageSizes(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, dbtest.SQLite(t))
	chance := rand.New(rand.NewPCG(1, 2))
	program := func(lines int) string {
		var b strings.Builder
		b.WriteString("package x\n")
		for i := range lines {
			fmt.Fprintf(&b, "\n// f%d does thing %x\nfunc f%d(a%x, b string) int { return len(a)*%d + len(%q) }\n", i, chance.Uint64(), i, chance.Uint32(), chance.Uint32(), fmt.Sprintf("%x", chance.Uint64()))
		}
		return b.String()
	}
	var yaml strings.Builder
	for i := range 200 {
		fmt.Fprintf(&yaml, "job-number-%d:\n  stage: %s\n  tags: [nowhere]\n  script: [x]\n", i, []string{"build", "test"}[i/100])
		if i >= 100 {
			fmt.Fprintf(&yaml, "  needs: [job-number-%d]\n", i-100)
		}
	}
	st := newCIProject(t, s, yaml.String())
	pipeline := st.pipeline("main")
	changes := []gittest.Change{{Path: "long.go", Content: program(400)}, {Path: "README.md", Content: strings.Repeat("Some *words* and `code` in a paragraph.\n\n", 3500)}}
	for i := range 10 {
		changes = append(changes, gittest.Change{Path: fmt.Sprintf("code/file%d.go", i), Content: program(60)})
	}
	for i := range 120 {
		changes = append(changes, gittest.Change{Path: fmt.Sprintf("many/a-file-with-a-rather-long-name-%03d.txt", i), Content: "x\n"})
	}
	s.Repository(t, st.project, gittest.Commit{Branch: "big", Seconds: 1_600_000_100, Message: "Write a lot of it, with a title that is about as long as they are", Changes: changes})
	b := newBrowser(t, s).signIn("ada", password)
	const at = "/ada/p/-/"
	pipelineAt := fmt.Sprintf("%spipelines/%d", at, pipeline)
	for path, plain := range map[string]int{ // the maximum size without compression
		at + "tree/big": 50 << 10, at + "tree/big/many": 56 << 10, at + "commits/big": 50 << 10, pipelineAt + "/builds": 50 << 10, at + "jobs": 50 << 10, at + "pipelines": 50 << 10,
		pipelineAt: 256 << 10, at + "blob/big/long.go": 256 << 10, at + "blob/big/README.md": 256 << 10, at + "blame/big/long.go": 256 << 10,
		at + "commit/big?view=inline": 256 << 10, at + "commit/big?view=parallel": 256 << 10,
	} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", b.address(path), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept-Encoding", "gzip")
		sent, page := b.send(r).want(200), b.get(path).want(200)
		t.Logf("%s has %d bytes, of which %d are sent", path, len(page.body), len(sent.body))
		if len(sent.body) >= 50<<10 || len(page.body) >= plain {
			t.Errorf("%s is larger than that", path)
		}
	}
}
