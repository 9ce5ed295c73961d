package ci

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWriteMetadata(t *testing.T) {
	t.Parallel()
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	for _, name := range []string{"out/sub/b.txt", "out/a.txt", "../outside", "/etc/passwd", "empty/"} {
		h := &zip.FileHeader{Name: name, Modified: time.Unix(1_600_000_000, 0), Method: zip.Deflate}
		h.SetMode(0o640)
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, "content"); err != nil && name != "empty/" {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(bytes.NewReader(archive.Bytes()), int64(archive.Len()))
	if r == nil {
		t.Fatal(err)
	}
	var list bytes.Buffer
	if err := writeMetadata(&list, r.File); err != nil {
		t.Fatal(err)
	}
	texts := readTexts(t, &list)
	if len(texts) < 2 || texts[0] != "GitLab Build Artifacts Metadata 0.0.2\n" || texts[1] != "{}" {
		t.Fatalf("the list begins with %q", texts)
	}
	var names []string
	for i := 2; i < len(texts); i += 2 {
		names = append(names, texts[i])
	}
	if diff := cmp.Diff([]string{"empty/", "out/", "out/a.txt", "out/sub/", "out/sub/b.txt"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	var facts entryFacts
	if err := json.Unmarshal([]byte(texts[7]), &facts); err != nil {
		t.Fatal(err)
	}
	if facts.Modified != 1_600_000_000 || facts.Mode != "100640" || facts.Size != 7 || facts.Zipped == 0 || facts.CRC == 0 {
		t.Errorf("facts of out/a.txt: %+v", facts)
	}
}

func readTexts(t *testing.T, in io.Reader) []string {
	t.Helper()
	z, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for {
		var size uint32
		err := binary.Read(z, binary.BigEndian, &size)
		if err == io.EOF {
			return texts
		}
		text := make([]byte, size)
		if err == nil {
			_, err = io.ReadFull(z, text)
		}
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
}

// FuzzWriteMetadata lists archives that others made: whatever is in them, each
// entry of the list is a path and facts, and lies within.
func FuzzWriteMetadata(f *testing.F) {
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	if _, err := w.Create("a/b"); err != nil {
		f.Fatal(err)
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	f.Add(archive.Bytes())
	f.Fuzz(func(t *testing.T, file []byte) {
		r, _ := zip.NewReader(bytes.NewReader(file), int64(len(file)))
		if r == nil {
			return
		}
		var list bytes.Buffer
		if err := writeMetadata(&list, r.File); err != nil {
			t.Fatal(err)
		}
		texts := readTexts(t, &list)
		if len(texts)%2 != 0 {
			t.Fatalf("%d texts", len(texts))
		}
		for i := 2; i < len(texts); i += 2 {
			if texts[i] != "" && texts[i][0] == '/' || !json.Valid([]byte(texts[i+1])) {
				t.Errorf("entry %q: %s", texts[i], texts[i+1])
			}
		}
	})
}
