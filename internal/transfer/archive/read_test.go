package archive

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"svc/internal/errs"
)

// entry is a file of an archive that a test makes by hand.
type entry struct {
	name, text string
	head       func(*tar.Header)
}

// plain are the entries of a small export.
func plain() []entry {
	const at = `"2024-01-02T03:04:05.000006Z"`
	return []entry{
		{name: manifestName, text: `{"format":"group-export","version":1,"exported_at":` + at + `,"group":{"name":"A","path":"a","full_path":"a"}}`},
		{name: "groups/1/group.ndjson", text: `{"path":"","created_at":` + at + `}` + "\n"},
		{name: "groups/1/avatar.png", text: "\x89PNG"},
		{name: "groups/1/labels.ndjson", text: `{"name":"bug","color":"#ff0000","created_at":` + at + `}` + "\n" + `{"name":"more"}` + "\n"},
		{name: "groups/1/members.ndjson", text: `{"username":"bob","email_sha256":"` + strings.Repeat("ab", 32) + `","access_level":30}` + "\n"},
		{name: "groups/2/group.ndjson", text: `{"path":"b","name":"B"}` + "\n"},
		{name: "groups/2/wiki.bundle", text: "# v2 git bundle\n"},
		{name: totalsName, text: `{"groups":2,"avatars":1,"labels":2,"members":1,"wikis":1}`},
	}
}

func pack(t testing.TB, entries []entry) []byte {
	t.Helper()
	file, err := packed(entries)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func packed(entries []entry) ([]byte, error) {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	for _, e := range entries {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Size: int64(len(e.text)), Mode: 0o644}
		if e.head != nil {
			e.head(h)
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := io.WriteString(w, e.text[:h.Size]); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	err := zip.Close()
	return out.Bytes(), err
}

// put replaces, or adds, an entry of a small export.
func put(name, text string) []entry {
	list := plain()
	for i := range list {
		if list[i].name == name {
			list[i].text = text
			return list
		}
	}
	return append(list, entry{name: name, text: text})
}

func inspect(file []byte) (Totals, *inspection, error) { return inspectAs(Groups(), file) }

func inspectAs(kind Kind, file []byte) (Totals, *inspection, error) {
	most := limits{line: 4000, groups: 3, rows: 9, people: 2, text: 1 << 20, whole: 2 << 20, small: 4000, free: 64 << 10, growth: 250}
	look := &inspection{people: UserList{Digests: map[Digest]int64{}}, most: most.people}
	count, err := read(context.Background(), bytes.NewReader(file), kind, look, most, func(int64) {})
	return count, look, err
}

// TestRead takes a file of exactly the right form, and no other.
func TestRead(t *testing.T) {
	t.Parallel()
	good := pack(t, plain())
	count, look, err := inspect(good)
	if err != nil || count != (Totals{Groups: 2, Avatars: 1, Labels: 2, Members: 1, Wikis: 1}) || len(look.people.Digests) != 1 {
		t.Fatalf("%+v, %d people: %v", count, len(look.people.Digests), err)
	}
	head := func(f func(*tar.Header)) []entry {
		list := plain()
		list[3].head = f
		return list
	}
	without := func(i int) []entry { return append(plain()[:i:i], plain()[i+1:]...) }
	swapped := plain()
	swapped[3], swapped[4] = swapped[4], swapped[3]
	tail := plain()
	tail = append(tail, entry{name: "groups/2/x", text: "x"})
	for name, c := range map[string]struct {
		file []byte
		want string // in the words of the refusal
	}{
		"nothing":                {nil, "not compressed with gzip"},
		"no archive":             {[]byte("hello"), "not compressed with gzip"},
		"cut off":                {good[:len(good)-20], "cut off or damaged"},
		"cut in half":            {good[:len(good)/2], "cut off or damaged"},
		"damaged":                {append(bytes.Clone(good[:len(good)-6]), 1, 2, 3, 4, 5, 6), "cut off or damaged"},
		"without its end":        {pack(t, without(7)), "totals.json is missing"},
		"without its start":      {pack(t, without(0)), "does not begin with manifest.json"},
		"of another kind":        {pack(t, put(manifestName, `{"format":"project-export","version":1}`)), "has another format"},
		"of a later version":     {pack(t, put(manifestName, `{"format":"group-export","version":2,"new":{}}`)), "version 2"},
		"with a strange name":    {pack(t, put(manifestName, `{"format":"group-export","version":1,"new":1}`)), "unknown field"},
		"something missing":      {pack(t, without(3)), "row counts differ"},
		"a group missing":        {pack(t, without(1)), "is not expected"},
		"something more":         {pack(t, tail), "There is data after"},
		"out of order":           {pack(t, swapped), "is not expected"},
		"no groups":              {pack(t, []entry{plain()[0], {name: totalsName, text: `{}`}}), "no group"},
		"out of the directory":   {pack(t, head(func(h *tar.Header) { h.Name = "groups/../../etc/passwd" })), "is not expected"},
		"absolute":               {pack(t, head(func(h *tar.Header) { h.Name = "/groups/1/labels.ndjson" })), "is not expected"},
		"another number":         {pack(t, head(func(h *tar.Header) { h.Name = "groups/01/labels.ndjson" })), "is not expected"},
		"a group ahead":          {pack(t, head(func(h *tar.Header) { h.Name = "groups/3/labels.ndjson" })), "is not expected"},
		"twice":                  {pack(t, head(func(h *tar.Header) { h.Name = "groups/1/avatar.gif" })), "is not expected"},
		"a link":                 {pack(t, head(func(h *tar.Header) { h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, "/etc/passwd", 0 })), "not a plain file"},
		"a hard link":            {pack(t, head(func(h *tar.Header) { h.Typeflag, h.Linkname, h.Size = tar.TypeLink, manifestName, 0 })), "not a plain file"},
		"a directory":            {pack(t, head(func(h *tar.Header) { h.Typeflag, h.Name, h.Size = tar.TypeDir, "groups/1/", 0 })), "not a plain file"},
		"a device":               {pack(t, head(func(h *tar.Header) { h.Typeflag, h.Size = tar.TypeChar, 0 })), "not a plain file"},
		"a row without its end":  {pack(t, put("groups/1/labels.ndjson", `{"name":"x"}`)), "line 1: it has no end"},
		"an empty row":           {pack(t, put("groups/1/labels.ndjson", "\n")), "line 1"},
		"two groups in one":      {pack(t, put("groups/2/group.ndjson", "{\"path\":\"b\"}\n{\"path\":\"b\"}\n")), "one row"},
		"no JSON":                {pack(t, put("groups/1/labels.ndjson", "name\n")), "line 1"},
		"a list":                 {pack(t, put("groups/1/labels.ndjson", "[]\n")), "not a JSON object"},
		"two objects":            {pack(t, put("groups/1/labels.ndjson", "{}{}\n")), "there is data after"},
		"a name twice":           {pack(t, put("groups/1/labels.ndjson", `{"name":"a","name":"b"}`+"\n")), "twice"},
		"a name in another case": {pack(t, put("groups/1/labels.ndjson", `{"Name":"a"}`+"\n")), "form that is not known"},
		"an unknown name":        {pack(t, put("groups/1/labels.ndjson", `{"name":"a","id":1}`+"\n")), "unknown field"},
		"another type":           {pack(t, put("groups/1/labels.ndjson", `{"name":1}`+"\n")), "cannot unmarshal"},
		"a NUL":                  {pack(t, put("groups/1/labels.ndjson", `{"name":"a\u0000"}`+"\n")), "NUL"},
		"no UTF-8":               {pack(t, put("groups/1/labels.ndjson", "{\"name\":\"\xff\"}\n")), "UTF-8"},
		"deep":                   {pack(t, put("groups/1/labels.ndjson", strings.Repeat(`{"a":`, 20)+"1"+strings.Repeat("}", 20)+"\n")), "deeply"},
		"a long row":             {pack(t, put("groups/1/labels.ndjson", `{"name":"`+randomText(4000)+`"}`+"\n")), "more than"},
		"no digest":              {pack(t, put("groups/1/members.ndjson", `{"username":"bob","email_sha256":"abcd"}`+"\n")), "SHA-256"},
		"a bomb":                 {pack(t, put("groups/2/wiki.bundle", strings.Repeat("\x00", 1<<20))), "times its size"},
		"too large as a whole":   {pack(t, put("groups/2/wiki.bundle", randomText(2<<20))), "contains too much"},
		"too much text":          {pack(t, put("groups/1/labels.ndjson", strings.Repeat(`{"name":"`+randomText(1000)+`"}`+"\n", 1100))), "too much text"},
		"too many rows":          {pack(t, put("groups/1/labels.ndjson", strings.Repeat("{}\n", 10))), "more than 9 rows"},
		"too many people":        {pack(t, put("groups/1/members.ndjson", person(1)+person(2)+person(3))), "more than 2 users"},
		"a large manifest":       {pack(t, put(manifestName, randomText(4001))), "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := inspect(c.file)
			if !errs.Is(err, errs.KindInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v: want %q", err, c.want)
			}
		})
	}
}

func person(n int) string { return fmt.Sprintf("{\"email_sha256\":\"%064d\"}\n", n) }

// randomText is text that hardly packs.
func randomText(n int) string {
	var b strings.Builder
	for x := uint64(88172645463325252); b.Len() < n; {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		fmt.Fprintf(&b, "%016x", x)
	}
	return b.String()
}

// TestSparse refuses a file that unpacks from nothing.
func TestSparse(t *testing.T) {
	t.Parallel()
	list := plain()
	list[3].head = func(h *tar.Header) {
		h.Format = tar.FormatPAX
		h.PAXRecords = map[string]string{"SVC.sparse.major": "1", "SVC.sparse.minor": "0", "SVC.sparse.name": "groups/1/labels.ndjson", "SVC.sparse.realsize": "99999999999"}
	}
	// The library does not write such records, so they are made of others.
	var raw bytes.Buffer
	zip, err := gzip.NewReader(bytes.NewReader(pack(t, list)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	out := gzip.NewWriter(&raw)
	if _, err := out.Write(bytes.ReplaceAll(text, []byte("SVC.sparse."), []byte("GNU.sparse."))); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := inspect(raw.Bytes()); !errs.Is(err, errs.KindInvalid) {
		t.Errorf("a sparse file: %v", err)
	}
}

// TestWrite reads what was written.
func TestWrite(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w, err := NewWriter(&out, Groups(), t.TempDir(), time.Unix(1700000000, 0))
	if err != nil {
		t.Fatal(err)
	}
	step := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	step(w.Begin(Origin{}))
	for g := range 3 {
		w.Group()
		step(w.Rows(GroupPart, func(add func(any) error) error { return add(GroupRow{Path: strings.Repeat("x", g)}) }))
		step(w.Rows(LabelPart, func(add func(any) error) error {
			for i := range g {
				step(add(LabelRow{Name: fmt.Sprint(i)}))
			}
			return nil
		}))
		step(w.File(WikiPart, "", func(out io.Writer) (bool, error) {
			_, err := io.WriteString(out, "text")
			return g == 1, err
		}))
	}
	step(w.Finish())
	step(w.Close())
	count, _, err := inspect(out.Bytes())
	if err != nil || count != (Totals{Groups: 3, Labels: 3, Wikis: 1}) {
		t.Errorf("%+v: %v", count, err)
	}
}

// FuzzRead reads anyone's entries: what is taken counts right, and what is not
// is refused in words.
func FuzzRead(f *testing.F) {
	var seed []string
	for _, e := range plain() {
		seed = append(seed, e.name, e.text)
	}
	f.Add(strings.Join(seed, "\x00"), byte('0'))
	f.Add(manifestName+"\x00{}", byte('2'))
	f.Fuzz(func(t *testing.T, text string, kind byte) {
		var list []entry
		fields := strings.Split(text, "\x00")
		for i := 0; i+1 < len(fields); i += 2 {
			list = append(list, entry{name: fields[i], text: fields[i+1]})
		}
		if len(list) > 1 {
			list[len(list)/2].head = func(h *tar.Header) {
				if h.Typeflag = kind; kind != tar.TypeReg {
					h.Size = 0
				}
			}
		}
		file, err := packed(list)
		if err != nil {
			return // no archive has such an entry
		}
		check(t, file)
	})
}

// FuzzReadRaw reads anyone's bytes.
func FuzzReadRaw(f *testing.F) {
	f.Add(pack(f, plain()))
	f.Fuzz(func(t *testing.T, file []byte) { check(t, file) })
}

func check(t *testing.T, file []byte) {
	count, look, err := inspect(file)
	if err != nil {
		if !errs.Is(err, errs.KindInvalid) {
			t.Fatalf("%T: %v", err, err)
		}
		return
	}
	if count.Groups < 1 || int64(len(look.people.Digests)) > 100*9 {
		t.Fatalf("%+v with %d people", count, len(look.people.Digests))
	}
}

// plainProject are the entries of a small export of a project.
func plainProject() []entry {
	return []entry{
		{name: manifestName, text: `{"format":"project-export","version":1,"exported_at":"2024-01-02T03:04:05Z","project":{"name":"A","path":"a","full_path":"a"}}`},
		{name: "project/project.ndjson", text: `{"description":"","settings":{"merge_method":"ff"}}` + "\n"},
		{name: "project/lfs/" + strings.Repeat("a", 64), text: "x"},
		{name: "project/lfs/" + strings.Repeat("b", 64), text: "y"},
		{name: "project/issues.ndjson", text: `{"iid":1,"title":"One","author":1,"labels":["bug"]}` + "\n"},
		{name: "project/snippets.ndjson", text: "{}\n{}\n"},
		{name: "project/snippets/9.bundle", text: "x"},
		{name: "project/snippets/10.bundle", text: "x"},
		{name: "project/users.ndjson", text: `{"username":"bob","email_sha256":"` + strings.Repeat("ab", 32) + `"}` + "\n"},
		{name: totalsName, text: `{"projects":1,"lfs_objects":2,"issues":1,"snippets":2,"snippet_repositories":2,"users":1}`},
	}
}

// TestReadProject takes the file of a project of exactly the right form, and no other.
func TestReadProject(t *testing.T) {
	t.Parallel()
	_, look, err := inspectAs(Project(), pack(t, plainProject()))
	if err != nil || len(look.people.List) != 1 || len(look.people.Digests) != 1 {
		t.Fatalf("%+v: %v", look.people, err)
	}
	named := func(i int, name string) []byte {
		list := plainProject()
		list[i].name = name
		return pack(t, list)
	}
	said := func(i int, text string) []byte {
		list := plainProject()
		list[i].text = text
		return pack(t, list)
	}
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"a group":               {pack(t, plain()), "is not a project export"},
		"twice":                 {named(3, "project/lfs/"+strings.Repeat("a", 64)), "is not expected"},
		"not sorted":            {named(2, "project/lfs/"+strings.Repeat("c", 64)), "is not expected"},
		"no digest":             {named(2, "project/lfs/../../etc/passwd"), "is not expected"},
		"a path in a directory": {named(2, "project/lfs/"+strings.Repeat("a", 64)+"/x"), "is not expected"},
		"a directory as a file": {named(2, "project/lfs"), "is not expected"},
		"a file of another":     {named(6, "project/snippets/09.bundle"), "is not expected"},
		"another directory":     {named(4, "other/issues.ndjson"), "is not expected"},
		"a numbered one":        {named(4, "project/1/issues.ndjson"), "is not expected"},
		"two projects":          {said(1, "{}\n{}\n"), "one row"},
		"an unknown name":       {said(4, `{"iid":1,"id":1}`+"\n"), "unknown field"},
		"a nested name twice":   {said(1, `{"settings":{"a":1,"a":2}}`+"\n"), "twice"},
		"a long user name":      {said(8, `{"username":"`+strings.Repeat("x", 2000)+`"}`+"\n"), "more than 1024 bytes"},
		"too many users":        {said(8, person(1)+person(2)+person(3)), "more than 2 users"},
		"wrong totals":          {said(9, `{"projects":1}`), "row counts differ"},
	} {
		_, _, err := inspectAs(Project(), c.file)
		if !errs.Is(err, errs.KindInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, _, err := inspect(pack(t, plainProject())); !errs.Is(err, errs.KindInvalid) {
		t.Errorf("as a group: %v", err)
	}
}

// FuzzReadProject reads anyone's rows of a project.
func FuzzReadProject(f *testing.F) {
	for _, e := range plainProject() {
		f.Add(e.name, e.text)
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		list := plainProject()
		for i := range list {
			if list[i].name == name {
				list[i].text = text
			}
		}
		file, err := packed(list)
		if err != nil {
			return
		}
		count, _, err := inspectAs(Project(), file)
		if err != nil {
			if !errs.Is(err, errs.KindInvalid) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		if count.Projects != 1 {
			t.Fatalf("%+v", count)
		}
	})
}
