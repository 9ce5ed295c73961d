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
)

// Rows of a table are lines of JSON, compressed: first what the table is, then
// an array for each row. Bytes, which JSON has not, are {"base64": "…"}.

// tableHead is the first line of a table.
type tableHead struct {
	Columns []string `json:"columns"`
	Last    int64    `json:"last"`
}

type jsonBytes struct {
	Base64 *string `json:"base64"`
}

// WriteRows writes a table.
func WriteRows(w io.Writer, columns []string, last int64, rows iter.Seq2[[]any, error]) error {
	z := gzip.NewWriter(w)
	out := json.NewEncoder(z)
	out.SetEscapeHTML(false)
	if err := out.Encode(tableHead{columns, last}); err != nil {
		return err
	}
	for row, err := range rows {
		if err != nil {
			return err
		}
		for i, v := range row {
			if b, ok := v.([]byte); ok {
				text := base64.StdEncoding.EncodeToString(b)
				row[i] = jsonBytes{&text}
			}
		}
		if err := out.Encode(row); err != nil {
			return err
		}
	}
	return z.Close()
}

// maxLine is the longest line of a table.
const maxLine = 256 << 20

// ReadRows reads a table: nil, bool, json.Number, string and []byte.
func ReadRows(r io.Reader) (columns []string, last int64, rows iter.Seq2[[]any, error], err error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, 0, nil, err
	}
	in := bufio.NewScanner(z)
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

func readRow(line []byte) ([]any, error) {
	in := json.NewDecoder(bytes.NewReader(line))
	in.UseNumber()
	var row []any
	if err := in.Decode(&row); err != nil {
		return nil, err
	}
	for i, v := range row {
		object, ok := v.(map[string]any)
		if !ok {
			if _, list := v.([]any); list {
				return nil, errors.New("a value is a list")
			}
			continue
		}
		text, ok := object["base64"].(string)
		if !ok || len(object) != 1 {
			return nil, fmt.Errorf("a value is %v", object)
		}
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, err
		}
		row[i] = b
	}
	return row, nil
}
