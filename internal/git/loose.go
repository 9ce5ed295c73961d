package git

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"svc/internal/durable"
)

// write writes a loose object and syncs it. It needs no process.
func (q *quarantine) write(kind Type, content []byte) (OID, error) {
	head := string(kind) + " " + strconv.Itoa(len(content)) + "\x00"
	sum := sha1.New()
	sum.Write([]byte(head))
	sum.Write(content)
	id := hex.EncodeToString(sum.Sum(nil))

	dir := filepath.Join(q.dir, id[:2])
	path := filepath.Join(dir, id[2:])
	if _, err := os.Lstat(path); err == nil {
		return OID(id), nil
	}
	var packed bytes.Buffer
	z, err := zlib.NewWriterLevel(&packed, zlib.BestSpeed)
	if err != nil {
		return "", err
	}
	// Writing to memory does not fail.
	_, _ = z.Write([]byte(head))
	_, _ = z.Write(content)
	if err := z.Close(); err != nil {
		return "", err
	}
	if err := os.Mkdir(dir, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("write object: %w", err)
	}
	if err := durable.WriteNew(path, 0o640, strings.NewReader(packed.String())); err != nil {
		return "", fmt.Errorf("write object: %w", err)
	}
	return OID(id), os.Chmod(path, 0o440)
}

// remove deletes an object.
func (q *quarantine) remove(id OID) {
	_ = os.Remove(filepath.Join(q.dir, string(id[:2]), string(id[2:]))) // a leftover does no harm
}
