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

// Upload is a file of a multipart body. It is stored in a temporary file until the
// end of the request.
type Upload struct {
	Name        string // base name sent by the client: printable, never a path, never empty
	Size        int64
	ContentType string // as sent by the client

	file *os.File
	left string // path to remove at the end, on systems that cannot remove open files
}

// uploadReader reads an upload; each has a separate position.
type uploadReader struct{ *io.SectionReader }

// Close exists for callers that need a closer. The file is kept until the end of the
// request.
func (uploadReader) Close() error { return nil }

// Open returns a reader at the start of the file. It is valid until the input of the
// upload is closed.
func (u *Upload) Open() uploadReader {
	return uploadReader{io.NewSectionReader(u.file, 0, u.Size)}
}

// text returns the content of the file, if it is valid text and not too long.
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

// CleanName returns the base name of a file name that a client sent; some clients
// send a whole path.
func CleanName(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, name)
	const longest = 255 // in bytes, the limit of file systems
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

// formReader reads a multipart body within the remaining limits.
type formReader struct {
	parts *multipart.Reader
	body  *watchedReader
	dir   string
	text  int64 // remaining bytes for text fields
	files int64 // remaining bytes for files
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

// next reads the next part; it returns io.EOF after the last one. If keep is false,
// it skips files.
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
		// A browser sends this for a file field without a selected file. It counts
		// as a parameter without a name.
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

// spool writes a file to disk.
func (f *formReader) spool(part *multipart.Part, filename string) (*Upload, error) {
	file, err := os.CreateTemp(f.dir, "upload-*")
	if err != nil {
		return nil, fmt.Errorf("spool an upload: %w", err)
	}
	u := &Upload{Name: CleanName(filename), ContentType: contentType(part), file: file}
	// An unlinked file is deleted by the kernel even if the process is killed.
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

// fault converts an error from reading a part: if the body was received completely,
// its format is invalid. The parser's error text is dropped, because it quotes the
// body.
func (f *formReader) fault(err error) error {
	if f.body.err != nil {
		return BodyError(f.body.err)
	}
	if _, known := errors.AsType[*InputError](err); known {
		return err
	}
	return &InputError{Fault: FaultMalformed, Text: "the multipart body is malformed or cut short"}
}

// watchedReader records its error, to distinguish a disconnected client from an
// invalid body or a full disk.
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
