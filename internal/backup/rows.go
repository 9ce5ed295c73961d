package backup

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"unicode/utf8"
)

// A table is stored as compressed lines of JSON: a tableHead, then an array for each
// row. Bytes are {"base64": "…"}; text that is not valid UTF-8 is {"text": "…"}, also
// in Base64.

// tableHead is the first line of a table.
type tableHead struct {
	Columns []string `json:"columns"`
	Last    int64    `json:"last"`
}

type jsonBytes struct {
	Base64 *string `json:"base64,omitempty"`
	Text   *string `json:"text,omitempty"`
}

// maxLine is the maximum length of a line.
const maxLine = 256 << 20

// WriteRows writes a table, and returns the number of rows and the uncompressed
// size.
func WriteRows(w io.Writer, columns []string, last int64, rows iter.Seq2[[]any, error]) (n, size int64, err error) {
	z := gzip.NewWriter(w)
	lines := &lineWriter{out: z}
	out := json.NewEncoder(lines) // one Write for each line
	out.SetEscapeHTML(false)
	if err := out.Encode(tableHead{columns, last}); err != nil {
		return 0, 0, err
	}
	for row, err := range rows {
		if err != nil {
			return n, lines.size, err
		}
		for i, v := range row {
			switch v := v.(type) {
			case []byte:
				if v != nil {
					text := base64.StdEncoding.EncodeToString(v)
					row[i] = jsonBytes{Base64: &text}
				}
			case string:
				if !utf8.ValidString(v) {
					text := base64.StdEncoding.EncodeToString([]byte(v))
					row[i] = jsonBytes{Text: &text}
				}
			}
		}
		if err := out.Encode(row); err != nil {
			return n, lines.size, err
		}
		n++
	}
	return n, lines.size, z.Close()
}

// lineWriter rejects lines that are too long to be read.
type lineWriter struct {
	out  io.Writer
	size int64
}

// Write implements io.Writer.
func (l *lineWriter) Write(p []byte) (int, error) {
	if len(p) > maxLine {
		return 0, fmt.Errorf("a row has %d MiB, the limit is %d", len(p)>>20, maxLine>>20)
	}
	n, err := l.out.Write(p)
	l.size += int64(n)
	return n, err
}

// ReadRows reads a table with an uncompressed size. Values are nil, bool,
// json.Number, string and []byte. If the size is different, rows returns an error
// when that is detected.
func ReadRows(r io.Reader, size int64) (columns []string, last int64, rows iter.Seq2[[]any, error], err error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, 0, nil, err
	}
	lines := &exact{in: z, left: size}
	in := bufio.NewScanner(lines)
	in.Buffer(make([]byte, 64<<10), maxLine)
	var head tableHead
	if !in.Scan() {
		return nil, 0, nil, errors.Join(errors.New("the table is empty"), in.Err())
	}
	if err := json.Unmarshal(in.Bytes(), &head); err != nil {
		return nil, 0, nil, err
	}
	return head.Columns, head.Last, func(yield func([]any, error) bool) {
		for in.Scan() {
			row, err := readRow(in.Bytes())
			if !yield(row, err) || err != nil {
				return
			}
		}
		if err := in.Err(); err != nil {
			yield(nil, err)
		}
	}, nil
}

// exact is a reader that returns an error if the content has another size than
// expected, so that a decompression bomb does not fill the disk.
type exact struct {
	in   io.Reader
	left int64
}

// Read implements io.Reader.
func (e *exact) Read(p []byte) (int, error) {
	n, err := e.in.Read(p)
	e.left -= int64(n)
	switch {
	case e.left < 0:
		return 0, errors.New("the table is larger than its recorded size")
	case errors.Is(err, io.EOF) && e.left > 0:
		return n, fmt.Errorf("the table is truncated: %w", io.ErrUnexpectedEOF)
	}
	return n, err
}

func readRow(line []byte) ([]any, error) {
	in := json.NewDecoder(bytes.NewReader(line))
	in.UseNumber()
	var row []any
	if err := in.Decode(&row); err != nil {
		return nil, err
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("unexpected data after a row")
	}
	for i, v := range row {
		switch v := v.(type) {
		case []any:
			return nil, errors.New("a value is a list")
		case map[string]any:
			value, err := readBytes(v)
			if err != nil {
				return nil, err
			}
			row[i] = value
		}
	}
	return row, nil
}

func readBytes(object map[string]any) (any, error) {
	for key, v := range object {
		text, ok := v.(string)
		if !ok || len(object) != 1 || key != "base64" && key != "text" {
			break
		}
		b, err := base64.StdEncoding.DecodeString(text)
		if key == "text" {
			return string(b), err
		}
		return b, err
	}
	return nil, errors.New("a value is an object")
}
