package backup

import (
	"archive/tar"
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// Reader reads a backup.
type Reader struct {
	in       io.ReaderAt
	size     int64
	close    func() error
	Manifest Manifest
}

// Entry is an entry of a backup.
type Entry struct {
	Name string
	Size int64
	Meta Meta
}

// Open reads a complete backup and checks it: the format, the checksums, that
// nothing is missing, and that no name leads out of its directory. roots are the
// allowed top-level directories. It reports its progress to progress.
func Open(name string, roots []string, progress func(done, size int64)) (*Reader, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	r, err := check(file, info.Size(), roots, progress)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s is unusable: %w", name, err), file.Close())
	}
	r.close = file.Close
	return r, nil
}

// Close closes the file.
func (r *Reader) Close() error { return r.close() }

// Each calls do for each entry below a directory, in the order of the file, with
// names relative to the directory. Content that do does not read is skipped without
// reading it.
func (r *Reader) Each(dir string, do func(e Entry, in io.Reader) error) error {
	return walk(r.in, r.size, func(head *tar.Header, in io.Reader, _ int64) error {
		name, ok := strings.CutPrefix(head.Name, dir+"/")
		if !ok {
			return nil
		}
		m, err := meta(head)
		if err == nil {
			err = do(Entry{name, head.Size, m}, in)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", head.Name, err)
		}
		return nil
	})
}

// walk calls do for all entries. at is the offset of the content of an entry.
func walk(in io.ReaderAt, size int64, do func(head *tar.Header, in io.Reader, at int64) error) error {
	file := io.NewSectionReader(in, 0, size)
	entries := tar.NewReader(file)
	for {
		head, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w (%w)", errNotWhole, err)
		}
		if head.Typeflag != tar.TypeReg {
			return fmt.Errorf("%.200q is not a regular file", head.Name)
		}
		at, err := file.Seek(0, io.SeekCurrent)
		if err == nil {
			err = do(head, entries, at)
		}
		if err != nil {
			return err
		}
	}
}

func check(in io.ReaderAt, size int64, roots []string, progress func(done, size int64)) (*Reader, error) {
	r := &Reader{in: in, size: size}
	sums, err := r.skim(roots)
	if err != nil {
		return nil, err
	}
	if err := r.compare(sums, progress); err != nil {
		return nil, err
	}
	return r, nil
}

// skim reads the headers of all entries, the format and the manifest. It returns the
// content of SHA256SUMS.
func (r *Reader) skim(roots []string) (sums *io.SectionReader, err error) {
	var entries, bytes int64
	parts := map[string]Part{}
	found, last := false, ""
	err = walk(r.in, r.size, func(head *tar.Header, in io.Reader, at int64) error {
		first := last == ""
		was := last
		last = head.Name
		if _, err := meta(head); err != nil {
			return err
		}
		switch {
		case first:
			return checkFormat(head, in)
		case found:
			return fmt.Errorf("%.200q follows the end of the archive", head.Name)
		case head.Name == sumsName && sums == nil:
			sums = io.NewSectionReader(r.in, at, head.Size)
			return nil
		case head.Name == manifestName && was == sumsName:
			found = true
			return r.readManifest(head, in)
		case sums != nil:
			return fmt.Errorf("%.200q follows the checksums", head.Name)
		}
		if err := checkName(head.Name); err != nil {
			return err
		}
		root, _, _ := strings.Cut(head.Name, "/")
		if !slices.Contains(roots, root) {
			return fmt.Errorf("it contains %.200q, which this version of svc does not know", head.Name)
		}
		entries++
		bytes += head.Size
		plus(parts, head.Name, head.Size)
		return nil
	})
	switch m := r.Manifest; {
	case err != nil:
		return nil, err
	case !found:
		return nil, errNotWhole
	case m.Entries != entries || m.Bytes != bytes || !maps.Equal(m.Parts, parts):
		return nil, fmt.Errorf("it has %d entries with %d bytes, but its manifest has %d with %d", entries, bytes, m.Entries, m.Bytes)
	}
	return sums, nil
}

// checkFormat reads the first entry, with the format version.
func checkFormat(head *tar.Header, in io.Reader) error {
	if head.Name != formatName || head.Size > maxFormat {
		return errors.New("it is not a backup of svc")
	}
	var f struct{ Format int }
	if err := json.NewDecoder(in).Decode(&f); err != nil {
		return fmt.Errorf("%w (%w)", errNotWhole, err)
	}
	return knownFormat(f.Format)
}

func knownFormat(format int) error {
	if format > Format {
		return fmt.Errorf("it has format %d, but this version of svc reads format %d: use a newer release", format, Format)
	}
	if format != Format {
		return fmt.Errorf("it has format %d, but this version of svc reads format %d", format, Format)
	}
	return nil
}

func (r *Reader) readManifest(head *tar.Header, in io.Reader) error {
	if head.Size > maxManifest {
		return errors.New("its manifest is too large")
	}
	text, err := io.ReadAll(in)
	if err == nil {
		err = json.Unmarshal(text, &r.Manifest)
	}
	if err != nil {
		return fmt.Errorf("%w (manifest: %w)", errNotWhole, err)
	}
	return knownFormat(r.Manifest.Format)
}

// compare compares the checksum of every entry with its line in SHA256SUMS.
func (r *Reader) compare(sums *io.SectionReader, progress func(done, size int64)) error {
	digest := sha256.New()
	lines := bufio.NewReaderSize(io.TeeReader(sums, digest), 64<<10)
	err := walk(r.in, r.size, func(head *tar.Header, in io.Reader, at int64) error {
		switch head.Name {
		case formatName, sumsName, manifestName:
			return nil
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, in); err != nil {
			return fmt.Errorf("%w (%.200q: %w)", errNotWhole, head.Name, err)
		}
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return fmt.Errorf("%w (%s: %w)", errNotWhole, sumsName, err)
		}
		if is := hex.EncodeToString(sum.Sum(nil)) + "  " + head.Name + "\n"; is != string(line) {
			return fmt.Errorf("%s is damaged: its checksum differs from that in %s", head.Name, sumsName)
		}
		progress(at+head.Size, r.size)
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := lines.ReadByte(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s has more lines than there are entries", sumsName)
	}
	if hex.EncodeToString(digest.Sum(nil)) != r.Manifest.Sum {
		return fmt.Errorf("%s is damaged", sumsName)
	}
	return nil
}
