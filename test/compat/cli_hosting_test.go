package compat

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// cliHosting manages a group, a project and its repository with the command.
func cliHosting(t *testing.T, c cli, userID string) {
	var made struct {
		ID         int64  `json:"id"`
		FullPath   string `json:"full_path"`
		Visibility string `json:"visibility"`
	}
	c.json(t, &made, "group", "create", "--name", "Engines", "--path", "engines", "--visibility", "public")
	same(t, "group", []any{made.FullPath, made.Visibility}, []any{"engines", "public"})
	group := strconv.FormatInt(made.ID, 10)

	id := cliProject(t, c, group)
	cliRepository(t, c, id)
	var member struct {
		Username string `json:"username"`
		Level    int64  `json:"access_level"`
	}
	c.json(t, &member, "project-member", "create", "--project-id", id, "--user-id", userID, "--access-level", "30")
	same(t, "member", []any{member.Username, member.Level}, []any{"ada", int64(30)})
	same(t, "protected branches", c.run(t, "-o", "yaml", "-f", "name", "project-protected-branch", "list", "--project-id", id), "- name: main\n\n")

	same(t, "output of delete", c.run(t, "project", "delete", "--id", id), "")
	var gone cliProjectJSON
	c.json(t, &gone, "project", "get", "--id", id)
	same(t, "path of a project that is marked for deletion", strings.HasSuffix(gone.Path, "-deletion_scheduled-"+id), true)
}

type cliProjectJSON struct {
	ID            int64    `json:"id"`
	Path          string   `json:"path_with_namespace"`
	Description   string   `json:"description"`
	DefaultBranch string   `json:"default_branch"`
	Topics        []string `json:"topics"`
}

// cliProject creates, changes and lists a project, and returns its ID.
func cliProject(t *testing.T, c cli, group string) string {
	var p cliProjectJSON
	c.json(t, &p, "project", "create", "--name", "Loom", "--namespace-id", group, "--initialize-with-readme", "true", "--topics", "brass,steam", "--visibility", "public")
	same(t, "project", []any{p.Path, p.DefaultBranch, p.Topics}, []any{"engines/loom", "main", []string{"brass", "steam"}})
	id := strconv.FormatInt(p.ID, 10)
	c.run(t, "project", "update", "--id", id, "--description", "weaves", "--path", "jacquard")
	c.json(t, &p, "project", "get", "--id", "engines/loom") // the old path
	same(t, "changed project", []any{p.Path, p.Description}, []any{"engines/jacquard", "weaves"})
	var list []cliProjectJSON
	c.json(t, &list, "--pagination", "keyset", "--order-by", "id", "--per-page", "1", "project", "list", "--get-all", "--topic", "steam")
	if len(list) != 1 || list[0].ID != p.ID {
		t.Errorf("projects with the topic: %+v", list)
	}
	return id
}

func cliRepository(t *testing.T, c cli, id string) {
	c.run(t, "project-file", "create", "--project-id", id, "--file-path", "src/a.txt", "--branch", "main", "--content", "one", "--commit-message", "write")
	same(t, "file", c.run(t, "project-file", "raw", "--project-id", id, "--file-path", "src/a.txt", "--ref", "main"), "one")
	c.run(t, "project-branch", "create", "--project-id", id, "--branch", "side", "--ref", "main")
	same(t, "commits", c.run(t, "-o", "yaml", "-f", "title", "project-commit", "list", "--project-id", id, "--ref-name", "side"), "- title: write\n- title: Initial commit\n\n")
	var tag struct {
		Name    string `json:"name"`
		Message string `json:"message"`
	}
	c.json(t, &tag, "project-tag", "create", "--project-id", id, "--tag-name", "v1", "--ref", "main", "--message", "first")
	same(t, "tag", []string{tag.Name, tag.Message}, []string{"v1", "first"})
	tree := c.run(t, "project", "repository-tree", "--id", id, "--recursive", "true")
	for _, path := range []string{"README.md", "src", "src/a.txt"} {
		if !strings.Contains(tree, "'path': '"+path+"'") {
			t.Errorf("the tree does not show %s but\n%s", path, tree)
		}
	}
	files := tarFiles(t, []byte(c.run(t, "project", "repository-archive", "--id", id, "--sha", "v1")))
	same(t, "contents of the archive", slices.Sorted(maps.Values(files)), []string{"# Loom\n\n", "one"})
}
