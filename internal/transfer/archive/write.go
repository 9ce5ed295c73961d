package archive

import (
	"archive/tar"
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/klauspost/compress/gzip"
)

// Writer writes a file entry by entry. The header of an entry has its size, so each
// entry is written to a temporary file first; nothing of it is held in memory.
type Writer struct {
	kind  Kind
	gzip  *gzip.Writer
	tar   *tar.Writer
	spool *os.File
	at    time.Time
	count Totals
	group int // the number of the current directory
}

// NewWriter begins a file; tempDir has room for an entry, and at is the time of the
// export.
func NewWriter(out io.Writer, k Kind, tempDir string, at time.Time) (*Writer, error) {
	spool, err := os.CreateTemp(tempDir, "export-*")
	if err != nil {
		return nil, fmt.Errorf("make room for an entry: %w", err)
	}
	_ = os.Remove(spool.Name()) // without a name it is removed with the process
	w := &Writer{kind: k, gzip: gzip.NewWriter(out), spool: spool, at: at}
	w.tar = tar.NewWriter(w.gzip)
	return w, nil
}

// Begin writes the first entry: the names of the top-level group or the project.
func (w *Writer) Begin(top Origin) error {
	m := Manifest{Format: w.kind.format, Version: version, ExportedAt: w.at.UTC(), Group: &top}
	if w.kind.newRow(GroupPart) == nil {
		m.Group, m.Project = nil, &top
	}
	return w.object(manifestName, m)
}

// Group begins the next group, and returns the number of its directory.
func (w *Writer) Group() int {
	w.group++
	return w.group
}

// Finish writes the last entry and the end of the file.
func (w *Writer) Finish() error {
	if err := w.object(totalsName, w.count); err != nil {
		return err
	}
	return errors.Join(w.tar.Close(), w.gzip.Close())
}

// Close releases the temporary file.
func (w *Writer) Close() error { return w.spool.Close() }

// object writes an entry that is one JSON object, on several lines.
func (w *Writer) object(name string, v any) error {
	return w.entry(name, func(out io.Writer) (bool, error) {
		e := json.NewEncoder(out)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return true, e.Encode(v)
	})
}

// Rows writes a part of the current group or project, with a row for each call of
// add. A part without rows has no entry.
func (w *Writer) Rows(p Part, fill func(add func(row any) error) error) error {
	return w.entry(w.name(string(p)), func(out io.Writer) (bool, error) {
		e := json.NewEncoder(out)
		e.SetEscapeHTML(false)
		count := w.count.of(p)
		before := *count
		err := fill(func(row any) error {
			*count++
			return e.Encode(row)
		})
		return *count > before, err
	})
}

// File writes a part of the current group or project that is a file; fill reports
// whether there is one. end is the end of its name, or its name in a directory of
// files.
func (w *Writer) File(p Part, end string, fill func(io.Writer) (bool, error)) error {
	if w.kind.parts[w.kind.rank(p)].files != nil {
		end = "/" + end
	}
	return w.entry(w.name(string(p)+end), func(out io.Writer) (bool, error) {
		there, err := fill(out)
		if there {
			*w.count.of(p)++
		}
		return there, err
	})
}

// name returns the name of an entry of the current group or project.
func (w *Writer) name(part string) string {
	if w.kind.newRow(GroupPart) == nil {
		return w.kind.dir + part
	}
	return fmt.Sprintf("%s%d/%s", w.kind.dir, w.group, part)
}

// entry writes an entry, if fill reports that there is content.
func (w *Writer) entry(name string, fill func(io.Writer) (bool, error)) error {
	if _, err := w.spool.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := w.spool.Truncate(0); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	out := bufio.NewWriterSize(w.spool, 64<<10)
	there, err := fill(out)
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if !there {
		return nil
	}
	if err := w.copy(name); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// copy writes the temporary file as an entry.
func (w *Writer) copy(name string) error {
	size, err := w.spool.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if _, err := w.spool.Seek(0, io.SeekStart); err != nil {
		return err
	}
	err = w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: w.at.Truncate(time.Second)})
	if err != nil {
		return err
	}
	_, err = io.Copy(w.tar, w.spool)
	return err
}
