package transfer

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"svc/internal/blob"
	"svc/internal/errs"
	"svc/internal/transfer/archive"
	"svc/internal/transfer/remote"
)

// spool stores the output of a step. The rows of each part are collected in a
// temporary file until the step is complete; files are stored immediately.
type spool struct {
	*Service
	e      *Entity
	group  int
	rows   map[string]*spoolRows
	order  []string
	files  []storedPart
	text   int64        // bytes of rows
	left   int64        // bytes of files that may be stored
	stored []storedPart // rows of earlier groups
	failed error        // why rows of an earlier group could not be stored
	put    func(part *storedPart, file *os.File) error
	skip   func(remote.Skipped)
}

type spoolRows struct {
	storedPart
	file *os.File
	out  *bufio.Writer
}

// maxRows is the maximum size of all rows of a step, in bytes: an export file has no
// more.
const maxRows = 4 << 30

// newSpool returns a spool for a step of an entity, of which some parts are stored.
func newSpool(ctx context.Context, s *Service, e *Entity, stored []storedPart, skip func(remote.Skipped)) *spool {
	left := s.Limits.OrUsual().Staged
	for _, part := range stored {
		left -= part.Size
	}
	return &spool{
		Service: s, e: e, rows: map[string]*spoolRows{}, left: left, skip: skip,
		put: func(part *storedPart, file *os.File) error { return s.putPart(ctx, part, file) },
	}
}

// Next implements remote.Output. The rows of the group are stored, so that only the
// files of one group are open at a time.
func (s *spool) Next() {
	s.storeRows()
	s.group++
}

// key returns the key of an object of the step. It has the run, so that a run that was
// taken over does not replace what the next one has stored.
func (s *spool) key(name string) string {
	return fmt.Sprintf("%s%d/%d-%s/%d-%s", partsAt(s.e.ID), s.e.run, s.e.Steps, s.e.Phase, s.group, name)
}

// Row implements remote.Output. A row that is not allowed in export files is
// skipped.
func (s *spool) Row(p archive.Part, row any) error {
	if s.failed != nil {
		return s.failed
	}
	text, err := json.Marshal(row)
	if err != nil {
		return err
	}
	if len(text) > archive.MaxRow {
		return s.tooLong(p, text)
	}
	key := s.key(string(p))
	to := s.rows[key]
	if to == nil {
		file, err := os.CreateTemp(s.TempDir, "import-*")
		if err != nil {
			return fmt.Errorf("create a temporary file: %w", err)
		}
		_ = os.Remove(file.Name()) // without a name it is removed with the process
		to = &spoolRows{storedPart{Group: s.group, Part: p, Key: key}, file, bufio.NewWriterSize(file, 32<<10)}
		s.rows[key] = to
		s.order = append(s.order, key)
	}
	to.Size += int64(len(text)) + 1
	if s.text += int64(len(text)) + 1; s.text > maxRows {
		return errs.Invalid("The source has more than %d GiB of data of one kind.", maxRows>>30)
	}
	if _, err := to.out.Write(text); err != nil {
		return err
	}
	return to.out.WriteByte('\n')
}

// tooLong reports a row that is skipped because of its size. Invalid for the row of
// a group, project, snippet or user: others refer to it by its number.
func (s *spool) tooLong(p archive.Part, text []byte) error {
	switch p {
	case archive.GroupPart, archive.ProjectPart, archive.SnippetPart, archive.PersonPart:
		return errs.Invalid("An object of the source (%s) has more than %d MiB.", p, archive.MaxRow>>20)
	}
	var of struct {
		Title, Name, Tag string
	}
	_ = json.Unmarshal(text, &of) // without a name it is reported as well
	relation, _, _ := strings.Cut(string(p), ".")
	s.skip(remote.Skipped{Relation: relation, Name: cmp.Or(of.Title, of.Name, of.Tag), Why: fmt.Sprintf("It has more than %d MiB.", archive.MaxRow>>20)})
	return nil
}

// File implements remote.Output.
func (s *spool) File(p archive.Part, name string, fill func(io.Writer) (bool, error)) error {
	file, err := os.CreateTemp(s.TempDir, "import-*")
	if err != nil {
		return fmt.Errorf("create a temporary file: %w", err)
	}
	defer file.Close()
	_ = os.Remove(file.Name())
	limit := &limitedWriter{file, maxFile, fmt.Sprintf("A repository or file of the source has more than %d GiB.", maxFile>>30)}
	if s.left < maxFile {
		limit = &limitedWriter{file, s.left, fmt.Sprintf("The repositories and files of a group or project may have %d MiB in total. The source has more.", s.Limits.OrUsual().Staged>>20)}
	}
	out := bufio.NewWriterSize(limit, 64<<10)
	there, err := fill(out)
	if err == nil {
		err = out.Flush()
	}
	if err != nil || !there {
		return err
	}
	part := storedPart{Group: s.group, Part: p, Name: name, Key: s.key(string(p) + "-" + name)}
	if err := s.put(&part, file); err != nil {
		return err
	}
	s.left -= part.Size
	s.files = append(s.files, part)
	return nil
}

// maxFile is the maximum size of a repository or another file of the source, in bytes.
const maxFile = 16 << 30

// limitedWriter refuses what is larger than its limit.
type limitedWriter struct {
	to   io.Writer
	left int64
	text string // of the error
}

// Write implements io.Writer.
func (w *limitedWriter) Write(p []byte) (int, error) {
	if w.left -= int64(len(p)); w.left < 0 {
		return 0, errs.Invalid("%s", w.text)
	}
	return w.to.Write(p)
}

// putPart stores a temporary file.
func (s *Service) putPart(ctx context.Context, part *storedPart, file *os.File) error {
	size, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	part.Size = size
	_, err = s.Blobs.Put(ctx, part.Key, file, blob.Options{ContentType: "application/octet-stream", Size: size})
	return err
}

// store stores the rows, and returns all parts of the step.
func (s *spool) store() ([]storedPart, error) {
	s.storeRows()
	return append(s.files, s.stored...), s.failed
}

// storeRows stores the rows of the current group.
func (s *spool) storeRows() {
	for _, key := range s.order {
		to := s.rows[key]
		err := to.out.Flush()
		if err == nil {
			err = s.put(&to.storedPart, to.file)
		}
		if err != nil && s.failed == nil {
			s.failed = err
		}
		s.stored = append(s.stored, to.storedPart)
		_ = to.file.Close() // what is in it is stored
		delete(s.rows, key)
	}
	s.order = nil
}

// close removes the temporary files.
func (s *spool) close() {
	for _, to := range s.rows {
		_ = to.file.Close() // what is in it is stored
	}
}
