package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"

	"svc/internal/errs"
)

// Taker receives the content of a file, in order. It returns Invalid to refuse it.
type Taker interface {
	// Begin receives the manifest of the file.
	Begin(m *Manifest) error
	// Row receives a row and its weight, at least its size; a *GroupRow begins the next
	// group.
	Row(ctx context.Context, p Part, row any, size int) error
	// File receives a file of the current group or project, and its size.
	File(ctx context.Context, p Part, name string, size int64, r io.Reader) error
	// End is called at the end of a part of the current group.
	End(ctx context.Context, p Part) error
}

// reader reads a file, which is untrusted: everything that does not have exactly the
// format of an export is Invalid.
type reader struct {
	kind Kind
	in   *meteredReader // the compressed file
	out  *meteredReader // unpacked
	to   Taker
	most limits
	tar  *tar.Reader
	line *bufio.Reader

	count   Totals
	rows    int64
	group   int    // the number of the current directory
	rank    int    // of the last part in it
	file    string // the name of the last file in a directory of files
	text    int64
	whole   int64
	touched func(read int64)
}

// Read passes the content of a file to a taker. It calls progress with the number of
// bytes that it has read. Invalid for a file that has another format.
func Read(ctx context.Context, in io.Reader, k Kind, to Taker, progress func(read int64)) (Totals, error) {
	return read(ctx, in, k, to, usualLimits(), progress)
}

// Bounded reads in until check returns an error; check gets the number of bytes that
// were read.
func Bounded(r io.Reader, check func(read int64) error) io.Reader {
	return &meteredReader{r: r, check: check}
}

func read(ctx context.Context, in io.Reader, k Kind, to Taker, most limits, progress func(read int64)) (Totals, error) {
	r := &reader{kind: k, rank: -1, in: &meteredReader{r: in}, to: to, most: most, touched: progress}
	err := r.read(ctx)
	if r.in.err != nil { // an error of the storage, not of the file
		return r.count, fmt.Errorf("read the file: %w", r.in.err)
	}
	return r.count, err
}

func (r *reader) read(ctx context.Context) error {
	unpacked, err := gzip.NewReader(r.in)
	if err != nil {
		return errs.Invalid("The file is not a %s export: it is not compressed with gzip.", r.kind.noun)
	}
	unpacked.Multistream(false)
	r.out = &meteredReader{r: unpacked, check: r.growth}
	r.tar = tar.NewReader(r.out)
	r.line = bufio.NewReaderSize(nil, 64<<10)
	if err := r.first(); err != nil {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		h, err := r.next()
		if err != nil {
			return err
		}
		if h.Name == totalsName {
			return r.last(h)
		}
		if err := r.part(ctx, h); err != nil {
			return err
		}
	}
}

// growth refuses a file that unpacks to much more than its size.
func (r *reader) growth(unpacked int64) error {
	if unpacked > r.most.free+r.most.growth*r.in.n {
		return errs.Invalid("The file unpacks to more than %d times its size.", r.most.growth)
	}
	return nil
}

// next returns the header of the next entry, which must exist and be a regular file.
func (r *reader) next() (*tar.Header, error) {
	h, err := r.tar.Next()
	r.touched(r.in.n)
	if err == io.EOF {
		return nil, errs.Invalid("The file is truncated: %s is missing.", totalsName)
	}
	if err != nil {
		return nil, r.broken("The file is cut off or damaged.", err)
	}
	// A sparse file would unpack to any size from a few bytes.
	sparse := slices.ContainsFunc(slices.Collect(maps.Keys(h.PAXRecords)), func(key string) bool { return strings.HasPrefix(key, "GNU.sparse.") })
	if h.Typeflag != tar.TypeReg || sparse {
		return nil, errs.Invalid("%.100q is not a plain file.", h.Name)
	}
	if r.whole += h.Size; h.Size < 0 || r.whole > r.most.whole {
		return nil, errs.Invalid("The file contains too much data.")
	}
	return h, nil
}

// broken returns the error for a file that cannot be read; an error with a better
// explanation is returned unchanged.
func (r *reader) broken(text string, err error) error {
	if _, ok := errors.AsType[*errs.Error](err); ok {
		return err
	}
	return errs.Invalid("%s", text).Because(err)
}

// first reads the manifest.
func (r *reader) first() error {
	h, err := r.next()
	if err != nil {
		return err
	}
	if h.Name != manifestName {
		return errs.Invalid("The file is not a %s export: it does not begin with %s.", r.kind.noun, manifestName)
	}
	text, err := r.small(h)
	if err != nil {
		return err
	}
	// Another version may have other names, so the version is checked first.
	var kind struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(text, &kind); err != nil || kind.Format != r.kind.format {
		return errs.Invalid("The file is not a %s export: %s has another format.", r.kind.noun, manifestName)
	}
	if kind.Version != version {
		return errs.Invalid("The file has version %d of the format; this server reads version %d.", kind.Version, version)
	}
	var m Manifest
	if err := decode(text, &m); err != nil {
		return located(h.Name, 0, err)
	}
	return r.to.Begin(&m)
}

// small reads an entry that is held in memory.
func (r *reader) small(h *tar.Header) ([]byte, error) {
	if h.Size > r.most.small {
		return nil, errs.Invalid("%s is too large.", h.Name)
	}
	text, err := io.ReadAll(r.tar)
	if err != nil {
		return nil, r.broken(h.Name+" is cut off or damaged.", err)
	}
	return bytes.TrimRight(text, "\n"), nil
}

// last compares the content with the totals, and checks that nothing follows.
func (r *reader) last(h *tar.Header) error {
	text, err := r.small(h)
	if err != nil {
		return err
	}
	var said Totals
	if err := decode(text, &said); err != nil {
		return located(totalsName, 0, err)
	}
	if said != r.count {
		return errs.Invalid("The file is incomplete: its row counts differ from %s.", totalsName)
	}
	if r.count.Groups+r.count.Projects == 0 {
		return errs.Invalid("The file contains no %s.", r.kind.noun)
	}
	if _, err := r.tar.Next(); err == nil {
		return errs.Invalid("There is data after %s.", totalsName)
	} else if err != io.EOF {
		return r.broken("The file is cut off or damaged.", err)
	}
	// The end of the compressed data has its checksum.
	if _, err := io.Copy(io.Discard, r.out); err != nil {
		return r.broken("The file is cut off or damaged.", err)
	}
	r.touched(r.in.n)
	return nil
}

// part reads an entry of a group or project.
func (r *reader) part(ctx context.Context, h *tar.Header) error {
	p, err := r.place(h.Name)
	if err != nil {
		return err
	}
	if r.kind.newRow(p) != nil {
		err = r.readRows(ctx, h, p)
	} else {
		*r.count.of(p)++
		err = r.to.File(ctx, p, h.Name, h.Size, fileReader{r})
		if err == nil {
			_, err = io.Copy(io.Discard, fileReader{r})
		}
	}
	if err == nil {
		err = r.to.End(ctx, p)
	}
	return located(h.Name, 0, err)
}

// fileReader is the current entry. Its errors say where in the file they occurred.
type fileReader struct{ r *reader }

func (f fileReader) Read(b []byte) (int, error) {
	n, err := f.r.tar.Read(b)
	f.r.touched(f.r.in.n)
	if err != nil && err != io.EOF {
		err = f.r.broken("it is cut off or damaged", err)
	}
	return n, err
}

// place returns the part and the group of an entry. Names must be exactly those of
// the format, each once and in order, so that none can lead elsewhere.
func (r *reader) place(name string) (Part, error) {
	strange := errs.Invalid("%.100q is not expected at this position of the export.", name)
	base, ok := strings.CutPrefix(name, r.kind.dir)
	n := 1 // there is one project
	if ok && r.kind.newRow(GroupPart) != nil {
		var number string
		number, base, ok = strings.Cut(base, "/")
		var err error
		if n, err = strconv.Atoi(number); err != nil || strconv.Itoa(n) != number {
			return "", strange
		}
	}
	if !ok {
		return "", strange
	}
	p, file := Part(base), ""
	if slices.Contains([]string{".png", ".jpg", ".gif", ".webp"}, strings.TrimPrefix(base, string(AvatarPart))) && strings.HasPrefix(base, string(AvatarPart)) {
		p = AvatarPart
	} else if p == AvatarPart {
		return "", strange
	}
	if dir, rest, ok := strings.Cut(base, "/"); ok {
		p, file = Part(dir), rest
	}
	rank := r.kind.rank(p)
	if rank < 0 || (r.kind.parts[rank].files == nil) != (file == "") || file != "" && !r.kind.parts[rank].files.MatchString(file) {
		return "", strange
	}
	switch {
	case rank == 0 && n == r.group+1:
		if n > r.most.groups {
			return "", errs.Invalid("The file contains more than %d groups.", r.most.groups)
		}
		r.group = n
	case n != r.group || n == 0:
		return "", strange
	case rank == r.rank && file != "" && follows(file, r.file):
	case rank <= r.rank:
		return "", strange
	}
	r.rank, r.file = rank, file
	return p, nil
}

// follows reports whether a file comes after another one in a directory: numbers by
// value, all others alphabetically.
func follows(file, last string) bool {
	return len(file) > len(last) || len(file) == len(last) && file > last
}

// readRows reads an entry of rows.
func (r *reader) readRows(ctx context.Context, h *tar.Header, p Part) error {
	if r.text += h.Size; r.text > r.most.text {
		return errs.Invalid("the file contains too much text")
	}
	r.line.Reset(fileReader{r})
	count := r.count.of(p)
	var room []byte
	for n := 1; ; n++ {
		line, err := readLine(r.line, &room, r.most.line)
		if err == io.EOF {
			if r.kind.rank(p) == 0 && n != 2 {
				return errs.Invalid("it does not have one row")
			}
			return nil
		}
		if err == nil {
			row := r.kind.newRow(p)
			if err = decode(line, row); err == nil {
				*count++
				if r.rows++; r.rows > r.most.rows {
					return errs.Invalid("the file contains more than %d rows", r.most.rows)
				}
				err = r.to.Row(ctx, p, row, weight(line))
			}
		}
		if err != nil {
			return located(h.Name, n, err)
		}
	}
}

// readLine returns the next line without its line break, which is required. It is
// valid until the next call.
func readLine(in *bufio.Reader, room *[]byte, most int) ([]byte, error) {
	line := (*room)[:0]
	for {
		piece, err := in.ReadSlice('\n')
		line = append(line, piece...)
		*room = line
		switch {
		case len(line) > most:
			return nil, errs.Invalid("it has more than %d bytes", most)
		case err == nil:
			return line[:len(line)-1], nil
		case err == bufio.ErrBufferFull:
		case err == io.EOF && len(line) == 0:
			return nil, io.EOF
		case err == io.EOF:
			return nil, errs.Invalid("it has no end")
		default:
			return nil, err
		}
	}
}

// located adds the position in the file to a refusal. Other errors are returned
// unchanged.
func located(name string, line int, err error) error {
	e, ok := errors.AsType[*errs.Error](err)
	if err == nil || !ok || e.Kind == errs.KindUnavailable || e.Code == inFile {
		return err
	}
	where := name
	if line > 0 && e.Code != InBatch {
		where += fmt.Sprintf(", line %d", line)
	}
	shown := *e.Because(nil)
	return errs.Invalid("%s: %s", where, shown.Error()).Because(err).Coded(inFile)
}

// inFile marks an error that has its position. InBatch marks an error of a batch of
// rows, for which the row is not known.
const (
	inFile  = "in_file"
	InBatch = "in_batch"
)

// meteredReader counts the bytes that were read, and can stop.
type meteredReader struct {
	r     io.Reader
	n     int64
	check func(n int64) error
	err   error // the error that stopped it, other than io.EOF
}

func (m *meteredReader) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.n += int64(n)
	if err == nil && m.check != nil {
		err = m.check(m.n)
	}
	if err != nil && err != io.EOF {
		m.err = err
	}
	return n, err
}

// weight returns the size of a row for those who write many at once. Each element of a
// list may become a row of a table, which is much larger than an empty element: they are
// counted by their commas.
func weight(line []byte) int { return len(line) + 128*bytes.Count(line, []byte{','}) }
