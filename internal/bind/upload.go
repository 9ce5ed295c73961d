package bind

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Upload is a file of a multipart body. It is in a temporary file until the
// request is over.
type Upload struct {
	Name        string // base name, as the client calls it: printable, never a path, never empty
	Size        int64
	ContentType string // as the client says

	file *os.File
	left string // Path to remove at the end, on systems that cannot do it at the start
}

// uploadReader reads an upload; every one has its own position.
type uploadReader struct{ *io.SectionReader }

// Close is there for callers that take a closer. The file itself stays until
// the request is over.
func (uploadReader) Close() error { return nil }

// Open gives a new reader at the start of the file, good until the input that
// the upload came with is closed. It can also read at any offset.
func (u *Upload) Open() uploadReader {
	return uploadReader{io.NewSectionReader(u.file, 0, u.Size)}
}

// Text returns what is in the file, if that is text and not too long.
func (u *Upload) text() (string, bool) {
	content, err := io.ReadAll(io.LimitReader(u.Open(), MaxFileText+1))
	text := string(content)
	return text, err == nil && len(content) <= MaxFileText && Clean(text)
}

func (u *Upload) close() error {
	err := u.file.Close()
	if u.left != "" {
		err = errors.Join(err, os.Remove(u.left))
	}
	return err
}

// CleanName makes a base name of what a client sent as the file's name; some
// send a whole path of their system.
func CleanName(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, name)
	const longest = 255 // bytes, what file systems take
	for len(name) > longest {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	if strings.Trim(name, ". ") == "" {
		return "file"
	}
	return name
}

func contentType(part *multipart.Part) string {
	media, _, err := mime.ParseMediaType(part.Header.Get("Content-Type"))
	if err != nil {
		return "application/octet-stream"
	}
	return media
}

// formReader reads a multipart body within what is left of its limits.
type formReader struct {
	parts *multipart.Reader
	body  *watchedReader
	dir   string
	text  int64 // bytes that text fields may still have
	files int64 // bytes that files may still have
}

// readMultipart adds the fields and files of a multipart body.
func (in *Input) readMultipart(r *http.Request, w http.ResponseWriter, l Limits) error {
	if r.ContentLength > l.Body+l.File {
		return TooLarge(nil)
	}
	f := formReader{dir: l.TempDir, text: l.Body, files: l.File}
	f.body = &watchedReader{ReadCloser: http.MaxBytesReader(w, r.Body, l.Body+l.File)}
	r.Body = f.body
	var err error
	if f.parts, err = r.MultipartReader(); err != nil {
		return &InputError{Fault: FaultMalformed, Text: "the multipart body has no usable boundary"}
	}
	for {
		p, err := f.next(l.File > 0)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if p.file != nil {
			in.files = append(in.files, p.file)
		}
		if len(in.files) > MaxFiles {
			return &InputError{Fault: FaultMalformed, Text: fmt.Sprintf("the body has more than %d files", MaxFiles)}
		}
		if err := in.add(p); err != nil {
			return err
		}
	}
}

// next reads the next part; io.EOF says that there is none. Without keep it
// reads over files.
func (f *formReader) next(keep bool) (pair, error) {
	part, err := f.parts.NextPart()
	if err == io.EOF {
		return pair{}, err
	}
	if err != nil {
		return pair{}, f.fault(err)
	}
	_, disposition, _ := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
	filename, isFile := disposition["filename"]
	p := pair{key: disposition["name"], from: fromBody, isFile: isFile, given: true}
	switch {
	case isFile && filename == "":
		// A browser sends this for a file field that was left alone. It counts as
		// a parameter without a name.
		return pair{from: fromBody}, nil
	case isFile && keep:
		p.file, err = f.spool(part, filename)
		return p, err
	case isFile:
		_, err = io.Copy(io.Discard, part)
	default:
		p.text, err = readText(part, f.text, 1<<10)
		f.text -= int64(len(p.text))
	}
	if err != nil {
		return pair{}, f.fault(err)
	}
	return p, nil
}

// spool copies a file to disk.
func (f *formReader) spool(part *multipart.Part, filename string) (*Upload, error) {
	file, err := os.CreateTemp(f.dir, "upload-*")
	if err != nil {
		return nil, fmt.Errorf("spool an upload: %w", err)
	}
	u := &Upload{Name: CleanName(filename), ContentType: contentType(part), file: file}
	// Without a name the file cannot outlive the process, however that ends.
	if err := os.Remove(file.Name()); err != nil {
		u.left = file.Name()
	}
	src := &watchedReader{ReadCloser: part}
	u.Size, err = io.Copy(file, io.LimitReader(src, f.files+1))
	switch {
	case err == nil && u.Size <= f.files:
		f.files -= u.Size
		return u, nil
	case err == nil:
		err = TooLarge(nil)
	case src.err != nil:
		err = f.fault(src.err)
	default:
		err = fmt.Errorf("spool an upload: %w", err)
	}
	return nil, errors.Join(err, u.close())
}

// Fault says what an error from reading a part means: if the body itself came
// in whole, its form is wrong. The parser's own words are dropped, as they
// quote the body.
func (f *formReader) fault(err error) error {
	if f.body.err != nil {
		return BodyError(f.body.err)
	}
	if _, known := errors.AsType[*InputError](err); known {
		return err
	}
	return &InputError{Fault: FaultMalformed, Text: "the multipart body is malformed or cut short"}
}

// watchedReader remembers its error, to tell a client that went away from a
// body in bad form or a disk that is full.
type watchedReader struct {
	io.ReadCloser
	err error
}

func (r *watchedReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}
