package backup

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
)

// Writer writes a backup. It is not safe for concurrent use.
type Writer struct {
	tar     *tar.Writer
	temp    string
	buffer  bytes.Buffer
	sums    *os.File // content of SHA256SUMS so far
	digest  hash.Hash
	lines   io.Writer
	entries int64
	bytes   int64
	parts   map[string]Part
}

// NewWriter starts a backup. Large entries of unknown size are first written to
// unlinked files in temp, one at a time; the kernel deletes them when the process
// ends.
func NewWriter(out io.Writer, temp string) (*Writer, error) {
	sums, err := TempFile(temp)
	if err != nil {
		return nil, err
	}
	digest := sha256.New()
	w := &Writer{tar: tar.NewWriter(out), temp: temp, sums: sums, digest: digest, lines: io.MultiWriter(sums, digest), parts: map[string]Part{}}
	text := fmt.Sprintf("{\"format\": %d}\n", Format)
	if err := w.write(formatName, int64(len(text)), nil, bytes.NewReader([]byte(text))); err != nil {
		return nil, errors.Join(err, sums.Close())
	}
	return w, nil
}

// TempFile creates a file and removes its name. The kernel deletes the file when it
// is closed or the process ends.
func TempFile(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, ".svc-backup-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Add adds an entry of a known size. If in has less data or fails, the backup cannot
// be continued, so Add must be used only for local files.
func (w *Writer) Add(name string, size int64, m Meta, in io.Reader) error {
	if err := checkName(name); err != nil {
		return err
	}
	sum := sha256.New()
	if err := w.write(name, size, m, io.TeeReader(in, sum)); err != nil {
		return err
	}
	return w.added(name, size, sum)
}

// AddFrom adds an entry with the content that fill writes. If fill fails, nothing
// was added and the backup can be continued.
func (w *Writer) AddFrom(name string, fill func(io.Writer) (Meta, error)) error {
	if err := checkName(name); err != nil {
		return err
	}
	w.buffer.Reset()
	s := &spool{buffer: &w.buffer, temp: w.temp, sum: sha256.New()}
	defer s.close()
	m, err := fill(s)
	if err != nil {
		return err
	}
	in, err := s.content()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := w.write(name, s.size, m, in); err != nil {
		return err
	}
	return w.added(name, s.size, s.sum)
}

func (w *Writer) write(name string, size int64, m Meta, in io.Reader) error {
	head := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, Format: tar.FormatPAX}
	for key, value := range m {
		if head.PAXRecords == nil {
			head.PAXRecords = map[string]string{}
		}
		head.PAXRecords[recordPrefix+key] = value
	}
	if err := w.tar.WriteHeader(head); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	n, err := io.Copy(w.tar, io.LimitReader(in, size)) // the file may have grown since
	if err == nil && n < size {
		err = fmt.Errorf("it was truncated while it was read: %w", io.ErrUnexpectedEOF)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (w *Writer) added(name string, size int64, sum hash.Hash) error {
	w.entries++
	w.bytes += size
	plus(w.parts, name, size)
	_, err := fmt.Fprintf(w.lines, "%s  %s\n", hex.EncodeToString(sum.Sum(nil)), name)
	return err
}

// Bytes returns the size of the entries so far.
func (w *Writer) Bytes() int64 { return w.bytes }

// Finish writes the checksums and the manifest, and fills in the fields of the
// manifest that the writer knows.
func (w *Writer) Finish(m *Manifest) error {
	m.Format, m.Entries, m.Bytes, m.Parts, m.Sum = Format, w.entries, w.bytes, w.parts, hex.EncodeToString(w.digest.Sum(nil))
	size, err := w.sums.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if _, err := w.sums.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := w.write(sumsName, size, nil, w.sums); err != nil {
		return err
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := w.write(manifestName, int64(len(text)), nil, bytes.NewReader(text)); err != nil {
		return err
	}
	return w.tar.Close()
}

// Close releases the resources of the writer. It does not complete the backup; see
// Finish.
func (w *Writer) Close() error { return w.sums.Close() }

// spoolLimit is the maximum size of an entry that is kept in memory.
const spoolLimit = 1 << 20

// spool stores an entry until its size is known: a small one in memory, a large one
// in a file.
type spool struct {
	buffer *bytes.Buffer
	file   *os.File
	temp   string
	size   int64
	sum    hash.Hash
}

// Write implements io.Writer.
func (s *spool) Write(p []byte) (n int, err error) {
	switch {
	case s.file != nil:
		n, err = s.file.Write(p)
	case s.buffer.Len()+len(p) <= spoolLimit:
		n, err = s.buffer.Write(p)
	default:
		if s.file, err = TempFile(s.temp); err != nil {
			return 0, err
		}
		if _, err = s.file.Write(s.buffer.Bytes()); err == nil {
			n, err = s.file.Write(p)
		}
	}
	s.size += int64(n)
	s.sum.Write(p[:n])
	return n, err
}

func (s *spool) content() (io.Reader, error) {
	if s.file == nil {
		return s.buffer, nil
	}
	_, err := s.file.Seek(0, io.SeekStart)
	return s.file, err
}

func (s *spool) close() {
	if s.file != nil {
		_ = s.file.Close() // it was read completely, or is discarded
	}
}
