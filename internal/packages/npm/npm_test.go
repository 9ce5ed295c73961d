package npm

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"svc/internal/errs"
)

type read struct {
	doc      Document
	versions map[string]string
	files    map[string]string
}

func readAll(r io.Reader) (read, error) {
	got := read{versions: map[string]string{}, files: map[string]string{}}
	var err error
	got.doc, err = Read(r, func(name string, manifest []byte) error {
		got.versions[name] = string(manifest)
		return nil
	}, func(name string, content io.Reader) error {
		text, err := io.ReadAll(content)
		got.files[name] = string(text)
		return err
	})
	return got, err
}

func TestRead(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("\x00\xff content ", 20_000)
	data := base64.StdEncoding.EncodeToString([]byte(content))
	text := ` { "_id" : "x", "name":"@a\/b", "extra":[{"deep":["]}\""]}, 1.5e3, null], "dist-tags":{"latest":"1.0.0"},
		"versions":{"1.0.0":{"name":"@a/b","s":"\u00e4"}}, "_attachments":{"b.tgz":{"content_type":"x","data":"` + strings.ReplaceAll(data, "/", `\/`) + `","length":3}}, "_rev":null } `
	for name, r := range map[string]io.Reader{"whole": strings.NewReader(text), "byte by byte": iotest.OneByteReader(strings.NewReader(text))} {
		got, err := readAll(r)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got.doc.Name != "@a/b" || got.doc.Tags["latest"] != "1.0.0" || got.doc.Versions != 1 || got.files["b.tgz"] != content {
			t.Errorf("%s: %+v", name, got.doc)
		}
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	want := []string{"x", "0.9.0", "1.0.0-1", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.2.0", "1.10.0", "10.0.0"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, Compare)
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

// FuzzRead checks that any body is read or refused as the client's mistake, and that
// what is accepted is what encoding/json reads.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		`{}`, `{"name":"a","versions":{"1.0.0":{"name":"a"}},"_attachments":{"a":{"data":"YQ=="}}}`, `{"a":[1,{"b":"\""}]}`, `{"_attachments":{"a":{"data":"Y\/=="}}}`,
		`{"dist-tags":{"a":"b"},"_rev":"1"} x`, `{"name":"\ud800"}`, `{,}`, `{"a":1,}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := readAll(bytes.NewReader(text))
		if err != nil {
			if !errs.Is(err, errs.KindInvalid) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		for name, manifest := range got.versions {
			m, err := ParseManifest([]byte(manifest))
			if err != nil {
				continue
			}
			if !json.Valid([]byte(m.Kept)) {
				t.Fatalf("version %q: %q is not JSON", name, m.Kept)
			}
			if _, err := Deprecate(m.Kept, "x"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// FuzzNames checks that accepted names cannot leave a directory or a header.
func FuzzNames(f *testing.F) {
	for _, name := range []string{"a", "@a/b", "..", "@../b", "a/../b", "-a", "1.0.0", "latest"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if CheckName(name) == nil && (strings.Contains(name, "..") && strings.HasPrefix(name, ".") || strings.ContainsAny(name, "\\\"<>\n\x00 ") || strings.Count(name, "/") > 1) {
			t.Errorf("%q is accepted", name)
		}
		if CheckVersion(name) == nil && strings.ContainsAny(name, "/\\\"<>\n\x00 ") {
			t.Errorf("version %q is accepted", name)
		}
		if CheckTag(name) == nil && CheckVersion(name) == nil {
			t.Errorf("tag %q is a version", name)
		}
	})
}
