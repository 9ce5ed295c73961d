package transfer_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"svc/internal/app/apptest"
	"svc/internal/errs"
	"svc/internal/git/gittest"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/transfer"
)

// buildProject makes a project with a repository, a label and many issues.
func (st *fixture) buildProject(path string, issues int) *project.Project {
	t, ctx := st.t, st.t.Context()
	t.Helper()
	p := must(st.Projects.Create(ctx, st.by, project.NewProject{Name: path, Path: path}))(t)
	st.Repository(t, p.ID, gittest.Commit{Changes: []gittest.Change{{Path: "a", Content: "a\n"}}})
	name, color := "bug", "#ff0000"
	must(st.Plan.CreateLabel(ctx, st.by, project.Place{Ref: project.RefTo(p.ID)}, plan.LabelFields{Name: &name, Color: &color}))(t)
	must(st.DB.ExecContext(ctx, `WITH RECURSIVE t (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < ?)
		INSERT INTO issues (project_id, iid, author_id, title, created_at, updated_at) SELECT CAST(? AS BIGINT), n, CAST(? AS BIGINT), 'Issue ' || n || ' of many', n, n FROM t`, issues, p.ID, st.by.ID))(t)
	return must(st.Projects.Get(ctx, st.by, project.RefTo(p.ID)))(t)
}

// exportProject returns the file of a project.
func (st *fixture) exportProject(ref project.Ref) []byte {
	t, ctx := st.t, st.t.Context()
	t.Helper()
	e := must(st.Transfer.StartProjectExport(ctx, st.by, ref, nil, nil))(t)
	must(0, st.Transfer.RunProjectExport(ctx, transfer.ProjectExportWork{ExportID: e.ID}))(t)
	_, file, err := st.Transfer.OpenProjectExport(ctx, st.by, ref)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	return must(io.ReadAll(file))(t)
}

// beginProject has an import of a file waiting.
func (st *fixture) beginProject(file []byte, path string) *transfer.Import {
	st.t.Helper()
	i, _, err := st.Transfer.StartProjectImport(st.t.Context(), st.by, transfer.NewProjectImport{Path: path, Size: int64(len(file)), File: bytes.NewReader(file)})
	if err != nil {
		st.t.Fatal(err)
	}
	return i
}

func (st *fixture) lookProject(i *transfer.Import) *transfer.Import {
	st.t.Helper()
	return must(st.Transfer.ProjectImport(st.t.Context(), st.by, i.ID))(st.t)
}

// TestProjectBrokenOff breaks the import of a project off at several places, as the end
// of the process would: no one sees a part of it, the next run makes it whole under the
// same ID, and one that is given up leaves nothing.
func TestProjectBrokenOff(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		st, ctx := newFixture(t, s), t.Context()
		file := st.exportProject(project.RefTo(st.buildProject("from", 1200).ID))
		count := func() (projects, issues int) {
			t.Helper()
			must(0, s.DB.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM projects), (SELECT count(*) FROM issues)`).Scan(&projects, &issues))(t)
			return projects, issues
		}
		projects, issues := count()
		size := int64(len(file))
		store := &breaking{Store: s.Blobs}
		s.Transfer.Blobs = store
		whole := st.beginProject(file, "whole")
		work := transfer.ProjectImportWork{ImportID: whole.ID}
		most := 0
		for _, part := range []int64{10, 50, 80, 97} {
			store.after = []int64{size, size * part / 100} // the first reading looks only
			if err := s.Transfer.RunProjectImport(ctx, work); !errors.Is(err, errBroken) {
				t.Fatalf("broken off at %d %%: %v", part, err)
			}
			if _, err := s.Projects.Get(ctx, st.by, "alice/whole"); !errs.Is(err, errs.KindNotFound) {
				t.Fatalf("broken off at %d %%, the project is there: %v", part, err)
			}
			_, now := count()
			most = max(most, now)
		}
		if most <= issues {
			t.Fatalf("%d issues, %d before: the import broke off before it made any", most, issues)
		}
		if _, _, err := st.Transfer.StartProjectImport(ctx, st.by, transfer.NewProjectImport{Path: "whole", File: bytes.NewReader(file)}); !errs.Is(err, errs.KindInvalid) {
			t.Errorf("another import takes the path: %v", err)
		}
		must(0, s.Transfer.RunProjectImport(ctx, work))(t)
		now := st.lookProject(whole)
		if now.State != transfer.Finished || now.OwnerID == nil || *now.OwnerID != whole.ProjectID() {
			t.Fatalf("in the end it is %+v", now)
		}
		if p, i := count(); p != projects+1 || i != issues+1200 {
			t.Errorf("%d projects and %d issues, want %d and %d", p, i, projects+1, issues+1200)
		}
		want, got := unpack(t, file), unpack(t, st.exportProject("alice/whole"))
		if strings.Join(want, "\n") != strings.Join(got, "\n") {
			t.Error("the copy has other content")
		}

		never := st.beginProject(file, "never")
		for range 5 {
			store.after = []int64{size, size * 9 / 10}
			if err := s.Transfer.RunProjectImport(ctx, transfer.ProjectImportWork{ImportID: never.ID}); !errors.Is(err, errBroken) {
				t.Fatal(err)
			}
		}
		if now := st.lookProject(never); now.State != transfer.Failed || now.Error == "" {
			t.Errorf("after five tries it is %+v", now)
		}
		canceled := st.beginProject(file, "canceled")
		must(0, s.Transfer.CancelProjectImport(ctx, st.by, canceled.ID))(t)
		must(0, s.Transfer.RunProjectImport(ctx, transfer.ProjectImportWork{ImportID: canceled.ID}))(t)
		if now := st.lookProject(canceled); now.State != transfer.Failed || now.Error != "The import was canceled." {
			t.Errorf("a canceled one is %+v", now)
		}
		must(0, s.Queue.Start(ctx))(t)
		must(0, s.Queue.Idle(ctx))(t)
		if p, i := count(); p != projects+1 || i != issues+1200 {
			t.Errorf("in the end %d projects and %d issues, want %d and %d", p, i, projects+1, issues+1200)
		}
	})
}

// edit packs a file again with one entry changed; an empty text leaves it out. Another
// name is added in front of the totals.
func edit(t testing.TB, file []byte, name, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	put := func(name string, content []byte) {
		must(0, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: 0o644}))(t)
		must(w.Write(content))(t)
	}
	done := false
	for r := tar.NewReader(must(gzip.NewReader(bytes.NewReader(file)))(t)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		content := must(io.ReadAll(r))(t)
		switch {
		case err != nil:
			t.Fatal(err)
		case h.Name == name && text == "":
			done = true
			continue
		case h.Name == name:
			content, done = []byte(text), true
		case h.Name == "totals.json" && !done:
			put(name, []byte(text))
		}
		put(h.Name, content)
	}
	must(0, w.Close())(t)
	must(0, zip.Close())(t)
	return out.Bytes()
}

// TestHostileProject refuses files that someone has changed, in words, and leaves
// nothing of them.
func TestHostileProject(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		st, ctx := newFixture(t, s), t.Context()
		from := st.buildProject("from", 2)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/snippets", from.ID), As: apptest.RootToken, Status: 201,
			JSON: `{"title":"Snippet","visibility":"private","files":[{"file_path":"a.txt","content":"a"}]}`})
		file := st.exportProject(project.RefTo(from.ID))
		bundle, text := "", map[string]string{}
		for _, e := range unpackWhole(t, file) {
			text[e[0]] = e[1]
		}
		bundle = text["project/repository.bundle"]
		issue := func(change string) string {
			lines := strings.SplitAfter(text["project/issues.ndjson"], "\n")
			from, to, _ := strings.Cut(change, "=>")
			if !strings.Contains(lines[0], from) {
				t.Fatalf("an issue does not have %s: %s", from, lines[0])
			}
			return strings.Replace(lines[0], from, to, 1) + lines[1]
		}
		head := func(from, to string) string {
			if !strings.Contains(bundle, from) {
				t.Fatalf("the bundle does not have %s", from)
			}
			return strings.Replace(bundle, from, to, 1)
		}
		oid := bundle[strings.Index(bundle, "\n")+1:][:40]
		for n, c := range []struct{ name, text, want string }{
			{"project/issues.ndjson", issue(`"iid":1=>"iid":2`), "iid is that of another row"},
			{"project/issues.ndjson", issue(`"iid":1=>"iid":-1`), "iid is invalid"},
			{"project/issues.ndjson", issue(`"iid":1=>"iid":9223372036854775807`), "iid is invalid"},
			{"project/issues.ndjson", issue(`"state":"opened"=>"state":"merged"`), "state is not included"},
			{"project/issues.ndjson", issue(`"type":"issue"=>"type":"epic"`), "type is not included"},
			{"project/issues.ndjson", issue(`"author":1=>"author":3`), "user 3"},
			{"project/issues.ndjson", issue(`"author":1=>"author":-1`), "user -1"},
			{"project/issues.ndjson", issue(`"title":"Issue 1 of many"=>"title":" "`), "title can't be blank"},
			{"project/issues.ndjson", issue(`"title":=>"id":5,"title":`), "unknown field"},
			{"project/issues.ndjson", issue(`"title":=>"relative_position":9223372036854775807,"title":`), "relative_position is invalid"},
			{"project/snippets.ndjson", strings.Replace(text["project/snippets.ndjson"], `["a.txt"]`, `["a.txt","a.txt"]`, 1), "files are not different"},
			{"project/snippets.ndjson", strings.Replace(text["project/snippets.ndjson"], `["a.txt"]`, `["0","1","2","3","4","5","6","7","8","9","a"]`, 1), "files are none or too many"},
			{"project/project.ndjson", strings.Replace(text["project/project.ndjson"], `"merge_method":"merge"`, `"merge_method":"x"`, 1), "merge_method is not included"},
			{"project/project.ndjson", strings.Replace(text["project/project.ndjson"], `"wiki_access_level":"enabled"`, `"wiki_access_level":"x"`, 1), "wiki_access_level is not included"},
			{"project/project.ndjson", strings.Replace(text["project/project.ndjson"], `"settings":{`, `"settings":{"runners_token":"x",`, 1), "is not known"},
			{"project/project.ndjson", strings.Replace(text["project/project.ndjson"], `"default_branch":"main"`, `"default_branch":"-x"`, 1), "branch"},
			{"project/project.ndjson", strings.Replace(text["project/project.ndjson"], `"visibility":"private"`, `"visibility":"open"`, 1), "visibility"},
			{"project/repository.bundle", "nothing", "not a complete git bundle"},
			{"project/repository.bundle", bundle[:len(bundle)-30], "not a complete git bundle"},
			{"project/repository.bundle", head(oid+" refs/heads/main", strings.Repeat("1", 40)+" refs/heads/main"), "not a complete git bundle"},
			{"project/repository.bundle", head("refs/heads/main", "refs/svc/other"), "not a complete git bundle"},
			{"project/repository.bundle", head("refs/heads/main", "refs/svc/keep/"+strings.Repeat("1", 40)), "not a complete git bundle"},
			{"project/repository.bundle", head("refs/heads/main", "refs/merge-requests/1/merge"), "not a complete git bundle"},
			{"project/repository.bundle", head("refs/heads/main", "refs/heads/../x"), "not a complete git bundle"},
			{"project/repository.bundle", head("refs/heads/main", "-x"), "not a complete git bundle"},
			{"project/repository.bundle", "", "row counts differ"},
			{"project/lfs/" + strings.Repeat("0", 64), "content", "is not expected"}, // out of its order
			{"project/uploads/" + strings.Repeat("0", 32), "content", "is not expected"},
			{"project/../../x", "content", "is not expected"},
			{"project/hooks.ndjson", "{}\n", "is not expected"},
			{"groups/1/group.ndjson", "{}\n", "is not expected"},
		} {
			i := st.beginProject(edit(t, file, c.name, c.text), fmt.Sprint("bad", n))
			must(0, s.Transfer.RunProjectImport(ctx, transfer.ProjectImportWork{ImportID: i.ID}))(t)
			if now := st.lookProject(i); now.State != transfer.Failed || !strings.Contains(now.Error, c.want) {
				t.Errorf("%d, %s: the import is %s: %q, want %q", n, c.name, now.State, now.Error, c.want)
			}
			if _, err := s.Projects.Get(ctx, st.by, project.Ref(fmt.Sprint("alice/bad", n))); !errs.Is(err, errs.KindNotFound) {
				t.Errorf("%d: the project is there: %v", n, err)
			}
		}
		good := st.beginProject(file, "good")
		must(0, s.Transfer.RunProjectImport(ctx, transfer.ProjectImportWork{ImportID: good.ID}))(t)
		if now := st.lookProject(good); now.State != transfer.Finished {
			t.Errorf("the file itself: %+v", now)
		}
		// Settings that later releases do not have any more are left out.
		older := st.beginProject(edit(t, file, "project/project.ndjson", strings.Replace(text["project/project.ndjson"], `"settings":{`,
			`"settings":{"auto_devops_enabled":true,"ci_allow_fork_pipelines_to_run_in_parent_project":true,`, 1)), "older")
		must(0, s.Transfer.RunProjectImport(ctx, transfer.ProjectImportWork{ImportID: older.ID}))(t)
		if now := st.lookProject(older); now.State != transfer.Finished {
			t.Errorf("a file of an older release: %+v", now)
		}
	})
}

// TestProjectAttemptTakenOver has another attempt of an import begin, and break off, while the
// first one runs: the first one does not publish what the second one has emptied.
func TestProjectAttemptTakenOver(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		st, ctx := newFixture(t, s), t.Context()
		file := st.exportProject(project.RefTo(st.buildProject("from", 1200).ID))
		size := int64(len(file))
		taken := st.beginProject(file, "taken")
		work := transfer.ProjectImportWork{ImportID: taken.ID}
		store := &breaking{Store: s.Blobs, after: []int64{size, size / 2}} // the second reading writes
		s.Transfer.Blobs = store
		store.then = func() {
			store.after = []int64{size / 10}
			if err := s.Transfer.RunProjectImport(ctx, work); !errors.Is(err, errBroken) {
				t.Errorf("the second attempt: %v", err)
			}
		}
		must(0, s.Transfer.RunProjectImport(ctx, work))(t)
		if now := st.lookProject(taken); now.State != transfer.Started {
			t.Errorf("after the first attempt it is %+v", now)
		}
		if _, err := s.Projects.Get(ctx, st.by, "alice/taken"); !errs.Is(err, errs.KindNotFound) {
			t.Errorf("after the first attempt, the project is there: %v", err)
		}
		must(0, s.Transfer.RunProjectImport(ctx, work))(t)
		if now := st.lookProject(taken); now.State != transfer.Finished {
			t.Errorf("in the end it is %+v", now)
		}
		want, got := unpack(t, file), unpack(t, st.exportProject("alice/taken"))
		if strings.Join(want, "\n") != strings.Join(got, "\n") {
			t.Error("the copy has other content")
		}
	})
}

// unpackWhole returns the entries of a file with their names.
func unpackWhole(t testing.TB, file []byte) (list [][2]string) {
	t.Helper()
	for r := tar.NewReader(must(gzip.NewReader(bytes.NewReader(file)))(t)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, [2]string{h.Name, string(must(io.ReadAll(r))(t))})
	}
}
