package compat

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

func goFiles(t *testing.T, h *hosting) {
	p := h.project(t, "papers")
	const path = "docs/a b/ünï.md"
	made := ask(h.ada.RepositoryFiles.CreateFile(p.ID, path, &gitlab.CreateFileOptions{
		Branch: new("main"), Content: new("one\ntwo\n"), CommitMessage: new("write"), AuthorName: new("Charles"), AuthorEmail: new("charles@example.org"),
	})).done(t, http.StatusCreated)
	same(t, "created", made, &gitlab.FileInfo{FilePath: path, Branch: "main"})
	first := h.head(t, p, "main")
	f := ask(h.ada.RepositoryFiles.GetFile(p.ID, path, &gitlab.GetFileOptions{Ref: new("main")})).ok(t)
	sum := sha256.Sum256([]byte("one\ntwo\n"))
	same(t, "file", f, &gitlab.File{
		FileName: "ünï.md", FilePath: path, Size: 8, Encoding: "base64", Content: base64.StdEncoding.EncodeToString([]byte("one\ntwo\n")), Ref: "main",
		BlobID: "814f4a422927b82f5f8a43f8fab6d3839e3983f2", CommitID: first, LastCommitID: first, SHA256: hex.EncodeToString(sum[:]),
	})
	same(t, "bytes of the file", string(ask(h.ada.RepositoryFiles.GetRawFile(p.ID, path, &gitlab.GetRawFileOptions{Ref: new("HEAD")})).ok(t)), "one\ntwo\n")

	ask(h.ada.RepositoryFiles.CreateFile(p.ID, path, &gitlab.CreateFileOptions{Branch: new("main"), Content: new(""), CommitMessage: new("again")})).
		refused(t, http.StatusBadRequest, "{message: A file with this name already exists}")
	ask(h.ada.RepositoryFiles.UpdateFile(p.ID, path, &gitlab.UpdateFileOptions{Branch: new("main"), Content: new("one\n2\n"), CommitMessage: new("count"), LastCommitID: &first})).done(t, http.StatusOK)
	second := h.head(t, p, "main")
	ask(h.ada.RepositoryFiles.UpdateFile(p.ID, path, &gitlab.UpdateFileOptions{Branch: new("main"), Content: new("late"), CommitMessage: new("late"), LastCommitID: &first})).
		refused(t, http.StatusBadRequest, "{message: You are attempting to update a file that has changed since you started editing it: "+path+"}")
	type part struct{ Commit, Author, Lines string }
	parts := func(o gitlab.GetFileBlameOptions) []part {
		return mapped(ask(h.ada.RepositoryFiles.GetFileBlame(p.ID, path, &o)).ok(t), func(r *gitlab.FileBlameRange) part {
			return part{r.Commit.ID, r.Commit.AuthorName, strings.Join(r.Lines, "\n")}
		})
	}
	same(t, "blame", parts(gitlab.GetFileBlameOptions{Ref: new("main")}), []part{{first, "Charles", "one"}, {second, "Name of ada", "2"}})
	same(t, "blame of a line", parts(gitlab.GetFileBlameOptions{Ref: new("main"), RangeStart: new(int64(2)), RangeEnd: new(int64(2))}), []part{{second, "Name of ada", "2"}})

	send(h.ada.RepositoryFiles.DeleteFile(p.ID, path, &gitlab.DeleteFileOptions{Branch: new("main"), CommitMessage: new("drop")})).done(t, http.StatusNoContent)
	ask(h.ada.RepositoryFiles.GetFile(p.ID, path, &gitlab.GetFileOptions{Ref: new("main")})).missing(t)
	same(t, "file of the earlier commit", ask(h.ada.RepositoryFiles.GetFile(p.ID, path, &gitlab.GetFileOptions{Ref: &second})).ok(t).LastCommitID, second)
}

// goFileHead reads the metadata of a file with a HEAD request. The names of its
// headers contain the name of the service.
func goFileHead(t *testing.T, root *gitlab.Client) {
	p := ask(root.Projects.CreateProject(&gitlab.CreateProjectOptions{Path: new("headers"), InitializeWithReadme: new(true)})).done(t, http.StatusCreated)
	want := ask(root.RepositoryFiles.GetFile(p.ID, "README.md", &gitlab.GetFileOptions{Ref: new("main")})).ok(t)
	if want.Size == 0 || want.BlobID == "" {
		t.Errorf("file: %+v", want)
	}
	want.Content = ""
	same(t, "head of the file", ask(root.RepositoryFiles.GetFileMetaData(p.ID, "README.md", &gitlab.GetFileMetaDataOptions{Ref: new("main")})).ok(t), want)
	same(t, "head of its bytes", ask(root.RepositoryFiles.GetRawFileMetaData(p.ID, "README.md", &gitlab.GetRawFileOptions{Ref: new("main")})).ok(t), want)
}

func treePath(n *gitlab.TreeNode) string { return n.Type + " " + n.Path }

func goTree(t *testing.T, h *hosting) {
	p := h.project(t, "grove")
	h.commit(t, p, &gitlab.CreateCommitOptions{Branch: new("main"), CommitMessage: new("plant"), Actions: []*gitlab.CommitActionOptions{
		{Action: new(gitlab.FileCreate), FilePath: new("src/one.txt"), Content: new("1\n")},
		{Action: new(gitlab.FileCreate), FilePath: new("src/deep/two.txt"), Content: new("2\n")},
		{Action: new(gitlab.FileCreate), FilePath: new("run.sh"), Content: new("#!/bin/sh\n"), ExecuteFilemode: new(true)},
	}})
	top := ask(h.ada.Repositories.ListTree(p.ID, nil)).ok(t)
	same(t, "top", mapped(top, treePath), []string{"tree src", "blob README.md", "blob run.sh"})
	same(t, "modes", mapped(top, func(n *gitlab.TreeNode) string { return n.Mode }), []string{"040000", "100644", "100755"})
	same(t, "below", mapped(ask(h.ada.Repositories.ListTree(p.ID, &gitlab.ListTreeOptions{Path: new("src"), Ref: new("main")})).ok(t), treePath), []string{"tree src/deep", "blob src/one.txt"})
	all := []string{"blob README.md", "blob run.sh", "tree src", "tree src/deep", "blob src/deep/two.txt", "blob src/one.txt"}
	same(t, "all", mapped(ask(h.ada.Repositories.ListTree(p.ID, &gitlab.ListTreeOptions{Recursive: new(true)})).ok(t), treePath), all)
	pages := 0
	same(t, "all by keyset", mapped(scanned(t, func(page gitlab.PaginationOptionFunc) ([]*gitlab.TreeNode, *gitlab.Response, error) {
		pages++
		return h.ada.Repositories.ListTree(p.ID, &gitlab.ListTreeOptions{Recursive: new(true), ListOptions: gitlab.ListOptions{Pagination: "keyset", PerPage: 4}}, page)
	}), treePath), all)
	same(t, "requests by keyset", pages, 2)
	ask(h.ada.Repositories.ListTree(p.ID, &gitlab.ListTreeOptions{Ref: new("nowhere")})).missing(t)

	blob := top[1].ID
	same(t, "bytes of a blob", string(ask(h.ada.Repositories.RawBlobContent(p.ID, blob)).ok(t)), "# grove\n\n")
	same(t, "blob", string(ask(h.ada.Repositories.Blob(p.ID, blob)).ok(t)),
		`{"size":9,"encoding":"base64","content":"`+base64.StdEncoding.EncodeToString([]byte("# grove\n\n"))+`","sha":"`+blob+`"}`)
	ask(h.ada.Repositories.RawBlobContent(p.ID, strings.Repeat("0", 40))).missing(t)
}

func goArchive(t *testing.T, h *hosting) {
	p := h.project(t, "archive")
	h.write(t, p, "main", "src/a.txt", "a\n", "add")
	head := h.head(t, p, "main")
	root := "archive-main-" + head
	same(t, "tar.gz", tarFiles(t, ask(h.ada.Repositories.Archive(p.ID, &gitlab.ArchiveOptions{SHA: new("main")})).ok(t)), map[string]string{
		root + "/README.md": "# archive\n\n", root + "/src/a.txt": "a\n",
	})
	var streamed bytes.Buffer
	send(h.ada.Repositories.StreamArchive(p.ID, &streamed, &gitlab.ArchiveOptions{Format: new("zip"), SHA: new("main"), Path: new("src")})).done(t, http.StatusOK)
	z, err := zip.NewReader(bytes.NewReader(streamed.Bytes()), int64(streamed.Len()))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, f := range z.File {
		if !strings.HasSuffix(f.Name, "/") {
			names = append(names, f.Name)
		}
	}
	same(t, "zip of a directory", names, []string{root + "-src/src/a.txt"})
	ask(h.ada.Repositories.Archive(p.ID, &gitlab.ArchiveOptions{SHA: new("nowhere")})).missing(t)
}

// tarFiles returns the files in a tar.gz archive by name.
func tarFiles(t *testing.T, packed []byte) map[string]string {
	t.Helper()
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(unpacked); ; {
		entry, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if entry.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Name] = string(content)
	}
}

// goCompare compares two branches that have diverged, and lists their contributors.
func goCompare(t *testing.T, h *hosting) {
	p := h.project(t, "compare")
	base := h.head(t, p, "main")
	ask(h.ada.Branches.CreateBranch(p.ID, &gitlab.CreateBranchOptions{Branch: new("side"), Ref: new("main")})).ok(t)
	h.write(t, p, "main", "main.txt", "m\n", "on main")
	h.commit(t, p, &gitlab.CreateCommitOptions{Branch: new("side"), CommitMessage: new("on side"), AuthorName: new("Charles"), AuthorEmail: new("charles@example.org"),
		Actions: []*gitlab.CommitActionOptions{{Action: new(gitlab.FileCreate), FilePath: new("side.txt"), Content: new("s\nt\n")}},
	})
	paths := func(c *gitlab.Compare) []string {
		return mapped(c.Diffs, func(d *gitlab.Diff) string { return d.NewPath })
	}
	c := ask(h.ada.Repositories.Compare(p.ID, &gitlab.CompareOptions{From: new("main"), To: new("side")})).ok(t)
	same(t, "compared", []any{mapped(c.Commits, title), paths(c), c.Commit.Title, c.CompareSameRef, c.CompareTimeout}, []any{[]string{"on side"}, []string{"side.txt"}, "on side", false, false})
	same(t, "text of the change", c.Diffs[0].Diff, "@@ -0,0 +1,2 @@\n+s\n+t\n")
	straight := ask(h.ada.Repositories.Compare(p.ID, &gitlab.CompareOptions{From: new("main"), To: new("side"), Straight: new(true), Unidiff: new(true)})).ok(t)
	same(t, "compared straight", paths(straight), []string{"main.txt", "side.txt"})
	same(t, "with names", straight.Diffs[1].Diff, "--- /dev/null\n+++ b/side.txt\n@@ -0,0 +1,2 @@\n+s\n+t\n")
	same(t, "with itself", ask(h.ada.Repositories.Compare(p.ID, &gitlab.CompareOptions{From: new("main"), To: new("main")})).ok(t).CompareSameRef, true)
	ask(h.ada.Repositories.Compare(p.ID, &gitlab.CompareOptions{From: new("main"), To: new("nowhere")})).missing(t)

	same(t, "merge base", ask(h.ada.Repositories.MergeBase(p.ID, &gitlab.MergeBaseOptions{Ref: &[]string{"main", "side"}})).ok(t).ID, base)
	by := func(o gitlab.ListContributorsOptions) []*gitlab.Contributor {
		return ask(h.ada.Repositories.Contributors(p.ID, &o)).ok(t)
	}
	ada := &gitlab.Contributor{Name: "Name of ada", Email: "ada@example.org", Commits: 2, Additions: 3}
	same(t, "contributors", by(gitlab.ListContributorsOptions{}), []*gitlab.Contributor{ada})
	ask(h.ada.Commits.CherryPickCommit(p.ID, "side", &gitlab.CherryPickCommitOptions{Branch: new("main")})).done(t, http.StatusCreated)
	charles := &gitlab.Contributor{Name: "Charles", Email: "charles@example.org", Commits: 1, Additions: 2}
	same(t, "contributors by commits", by(gitlab.ListContributorsOptions{OrderBy: new("commits"), Sort: new("desc")}), []*gitlab.Contributor{ada, charles})
	same(t, "contributors by name", by(gitlab.ListContributorsOptions{OrderBy: new("name")}), []*gitlab.Contributor{charles, ada})
}

func goChangelog(t *testing.T, h *hosting) {
	p := h.project(t, "changes")
	ask(h.ada.Tags.CreateTag(p.ID, &gitlab.CreateTagOptions{TagName: new("v1.0.0"), Ref: new("main")})).ok(t)
	c := h.write(t, p, "main", "a.txt", "a\n", "Add letters\n\nChangelog: added")
	h.write(t, p, "main", "b.txt", "b\n", "Nobody needs to know")
	day := later()
	want := "## 1.1.0 (" + day.String() + ")\n\n### added (1 change)\n\n- [Add letters](" + h.s.url + "/ada/changes/-/commit/" + c.ID + ")\n"
	data := ask(h.ada.Repositories.GenerateChangelogData(p.ID, gitlab.GenerateChangelogDataOptions{Version: new("1.1.0"), Date: &day})).ok(t)
	same(t, "notes", data.Notes, want+"\n")
	send(h.ada.Repositories.AddChangelog(p.ID, &gitlab.AddChangelogOptions{Version: new("1.1.0"), Date: &day, Branch: new("main"), File: new("CHANGES.md"), Message: new("Tell")})).done(t, http.StatusOK)
	same(t, "file", string(ask(h.ada.RepositoryFiles.GetRawFile(p.ID, "CHANGES.md", nil)).ok(t)), want)
	same(t, "message of the commit", ask(h.ada.Commits.GetCommit(p.ID, "main", nil)).ok(t).Title, "Tell")
	ask(h.ada.Repositories.GenerateChangelogData(p.ID, gitlab.GenerateChangelogDataOptions{Version: new("one")})).refused(t, http.StatusBadRequest, "{error: version is invalid}")
}
