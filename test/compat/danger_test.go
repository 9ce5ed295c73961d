package compat

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// dangerTools installs danger.
var dangerTools = sync.OnceValues(func() (string, error) {
	dir, err := filepath.Abs(filepath.Join("node", "danger"))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "danger", "package.json")); err == nil {
		return dir, nil
	}
	fetch := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	fetch.Dir = dir
	if out, err := fetch.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return dir, nil
})

// TestDanger reviews a merge request with danger: it reads the changes, writes a
// summary and a comment on a line, and updates both in a second run.
func TestDanger(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		dir, err := dangerTools()
		if err != nil {
			t.Fatalf("danger is missing, run scripts/setup: %v", err)
		}
		h := newHosting(t, s)
		p := h.project(t, "reviewed")
		ask(h.ada.Branches.CreateBranch(p.ID, &gitlab.CreateBranchOptions{Branch: new("work"), Ref: new("main")})).done(t, http.StatusCreated)
		commit := h.write(t, p, "work", "new.txt", "a line\n", "Add a file")
		mr := ask(h.ada.MergeRequests.CreateMergeRequest(p.ID, &gitlab.CreateMergeRequestOptions{Title: new("Change"), SourceBranch: new("work"), TargetBranch: new("main")})).done(t, http.StatusCreated)
		rules := filepath.Join(t.TempDir(), "dangerfile.js")
		run := func(text string) {
			t.Helper()
			if err := os.WriteFile(rules, []byte(`const {danger, message, warn} = require('danger')
warn('`+text+` !' + danger.gitlab.mr.iid + ' of ' + danger.gitlab.mr.author.username + ', files: ' + danger.git.created_files.join(' ') + ', commits: ' + danger.gitlab.commits.length)
message('on the line', 'new.txt', 1)
`), 0o600); err != nil {
				t.Fatal(err)
			}
			c := exec.CommandContext(t.Context(), "node", filepath.Join(dir, "node_modules", "danger", "distribution", "commands", "danger.js"), "ci", "--dangerfile", rules)
			c.Dir = dir
			c.Env = append(os.Environ(), "GITLAB_CI=true", "CI_MERGE_REQUEST_IID="+fmt.Sprint(mr.IID), "CI_MERGE_REQUEST_PROJECT_PATH="+p.PathWithNamespace, "CI_PROJECT_PATH="+p.PathWithNamespace,
				"CI_PROJECT_URL="+p.WebURL, "CI_MERGE_REQUEST_PROJECT_URL="+p.WebURL, "CI_API_V4_URL="+s.url+"/api/v4", "CI_SERVER_URL="+s.url, "CI_JOB_ID=1", "CI_COMMIT_SHA="+commit.ID,
				"DANGER_GITLAB_HOST="+s.url, "DANGER_GITLAB_API_BASE_URL="+s.url+"/api/v4", "DANGER_GITLAB_API_TOKEN="+h.adaToken)
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("danger: %v: %s", err, out)
			}
		}
		for _, text := range []string{"First", "Second"} {
			run(text)
			var summary, inline int
			for _, n := range ask(h.ada.Notes.ListMergeRequestNotes(p.ID, mr.IID, nil)).ok(t) {
				switch {
				case n.System:
				case n.Type == gitlab.DiffNote && n.Position.NewPath == "new.txt" && n.Position.NewLine == 1 && strings.Contains(n.Body, "on the line"):
					inline++
				case strings.Contains(n.Body, fmt.Sprintf("%s !%d of ada, files: new.txt, commits: 1", text, mr.IID)):
					summary++
				default:
					t.Errorf("%s run: another note: %+v", text, n)
				}
			}
			same(t, text+" run", []int{summary, inline}, []int{1, 1})
		}
	})
}
