package runner

import (
	"bytes"
	"io"
	"mime/multipart"
	"os"
)

// form is a multipart request body with a file. The file is read each time the body
// is sent, and is not held in memory.
type form struct {
	head, tail []byte
	path       string
	size       int64
}

func newForm(path, name string) (*form, string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, "", err
	}
	var text bytes.Buffer
	w := multipart.NewWriter(&text)
	if _, err := w.CreateFormFile("file", name); err != nil {
		return nil, "", err
	}
	head := bytes.Clone(text.Bytes())
	text.Reset()
	if err := w.Close(); err != nil {
		return nil, "", err
	}
	f := &form{head: head, tail: bytes.Clone(text.Bytes()), path: path}
	f.size = int64(len(f.head)) + info.Size() + int64(len(f.tail))
	return f, w.FormDataContentType(), nil
}

func (f *form) open() (io.ReadCloser, error) {
	file, err := os.Open(f.path)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(f.head), file, bytes.NewReader(f.tail)), file}, nil
}
