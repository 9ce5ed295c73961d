// Package backup writes and reads the file of a backup: a tar file whose
// entries carry their checksums, and that ends with a manifest. It knows
// nothing of what is backed up.
package backup

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Format is the version of the file that this program writes.
const Format = 1

// Manifest stands at the end of a backup, and says what it is of.
type Manifest struct {
	Format    int       `json:"format"`
	Program   string    `json:"program"` // the version that made it
	Schema    int64     `json:"schema"`  // the version of the database
	Database  string    `json:"database"`
	CreatedAt time.Time `json:"created_at"`
	Storages  []string  `json:"storages"`
	Key       bool      `json:"key"`     // the instance key is in it
	Entries   int64     `json:"entries"` // before the manifest
	Bytes     int64     `json:"bytes"`
	// Sum is the SHA-256 of the lines "<sum>  <name>\n" of all entries.
	Sum string `json:"sum"`
	// Missing are things that the database names and that were not there.
	Missing []string `json:"missing,omitempty"`
}

const (
	manifestName = "manifest.json"
	sumRecord    = "SVC.sha256"
	maxManifest  = 16 << 20
)

// Writer writes a backup. The file appears under its name when it is whole.
type Writer struct {
	file    *os.File
	name    string
	tar     *tar.Writer
	temp    string // a directory for what has to be measured first
	sums    io.Writer
	digest  interface{ Sum([]byte) []byte }
	entries int64
	bytes   int64
}

// Create begins a backup. There must be no file of the name.
func Create(name, temp string) (*Writer, error) {
	if _, err := os.Lstat(name); err == nil {
		return nil, fmt.Errorf("%s is there already", name)
	}
	file, err := os.OpenFile(name+".partial", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	digest := sha256.New()
	return &Writer{file: file, name: name, tar: tar.NewWriter(file), temp: temp, sums: digest, digest: digest}, nil
}

// Add adds an entry of what fill writes, of whatever size.
func (w *Writer) Add(name string, fill func(io.Writer) error) error {
	f, err := os.CreateTemp(w.temp, "backup-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	sum := sha256.New()
	if err := fill(io.MultiWriter(f, sum)); err != nil {
		return err
	}
	size, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	hexed := hex.EncodeToString(sum.Sum(nil))
	head := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, Format: tar.FormatPAX, PAXRecords: map[string]string{sumRecord: hexed}}
	if err := w.tar.WriteHeader(head); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if _, err := io.Copy(w.tar, f); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if _, err := fmt.Fprintf(w.sums, "%s  %s\n", hexed, name); err != nil {
		return err
	}
	w.entries++
	w.bytes += size
	return nil
}

// Close ends the backup with its manifest and gives the file its name.
func (w *Writer) Close(m *Manifest) error {
	m.Format, m.Entries, m.Bytes, m.Sum = Format, w.entries, w.bytes, hex.EncodeToString(w.digest.Sum(nil))
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: manifestName, Size: int64(len(text)), Mode: 0o600, Format: tar.FormatPAX}); err != nil {
		return err
	}
	if _, err := w.tar.Write(text); err != nil {
		return err
	}
	if err := errors.Join(w.tar.Close(), w.file.Sync(), w.file.Close()); err != nil {
		return err
	}
	if err := os.Link(w.name+".partial", w.name); err != nil { // never over another
		return err
	}
	if err := os.Remove(w.name + ".partial"); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(w.name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Abort removes a backup that was not closed.
func (w *Writer) Abort() {
	w.file.Close()
	_ = os.Remove(w.name + ".partial")
}

// Reader reads a backup.
type Reader struct {
	file     *os.File
	Manifest Manifest
}

// Open reads all of a backup and checks it: that it ends with a manifest of a
// format that is known, that nothing is missing, added or changed, and that no
// name leads anywhere. progress is told the bytes that were read.
func Open(name string, progress func(read int64)) (*Reader, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	r := &Reader{file: file}
	if err := r.verify(progress); err != nil {
		return nil, errors.Join(fmt.Errorf("%s can not be used: %w", name, err), file.Close())
	}
	return r, nil
}

// Close closes the file.
func (r *Reader) Close() error { return r.file.Close() }

func (r *Reader) verify(progress func(int64)) error {
	digest := sha256.New()
	var entries, bytes int64
	found := false
	err := r.each(func(head *tar.Header, in io.Reader) error {
		if found {
			return fmt.Errorf("%s stands behind the manifest", head.Name)
		}
		if head.Name == manifestName {
			found = true
			if head.Size > maxManifest {
				return errors.New("the manifest is too large")
			}
			return json.NewDecoder(in).Decode(&r.Manifest)
		}
		if !filepath.IsLocal(head.Name) || path.Clean(head.Name) != head.Name || strings.Contains(head.Name, `\`) {
			return fmt.Errorf("it has an entry of the name %q", head.Name)
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, in); err != nil {
			return fmt.Errorf("%s: %w", head.Name, err)
		}
		hexed := hex.EncodeToString(sum.Sum(nil))
		if want := head.PAXRecords[sumRecord]; want != hexed {
			return fmt.Errorf("%s is damaged: its checksum is %s and should be %s", head.Name, hexed, want)
		}
		fmt.Fprintf(digest, "%s  %s\n", hexed, head.Name)
		entries++
		bytes += head.Size
		progress(bytes)
		return nil
	})
	m := r.Manifest
	switch {
	case err != nil:
		return err
	case !found:
		return errors.New("it is not whole: it has no manifest")
	case m.Format != Format:
		return fmt.Errorf("it has format %d, this program reads %d", m.Format, Format)
	case m.Entries != entries || m.Bytes != bytes || m.Sum != hex.EncodeToString(digest.Sum(nil)):
		return errors.New("it is not whole: entries are missing or were changed")
	}
	return nil
}

// Each calls do with each entry below a directory, in the order of the file.
func (r *Reader) Each(dir string, do func(name string, size int64, in io.Reader) error) error {
	return r.each(func(head *tar.Header, in io.Reader) error {
		name, ok := strings.CutPrefix(head.Name, dir+"/")
		if !ok {
			return nil
		}
		if err := do(name, head.Size, in); err != nil {
			return fmt.Errorf("%s: %w", head.Name, err)
		}
		return nil
	})
}

func (r *Reader) each(do func(*tar.Header, io.Reader) error) error {
	if _, err := r.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	in := tar.NewReader(r.file)
	for {
		head, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("it is no backup, or was cut off: %w", err)
		}
		if head.Typeflag != tar.TypeReg {
			return fmt.Errorf("%q is no file", head.Name)
		}
		if err := do(head, in); err != nil {
			return err
		}
	}
}
