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
	"slices"
	"strconv"
	"strings"
	"time"

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

// encodeTree returns the content of a tree and sorts its entries.
func encodeTree(entries []Entry) ([]byte, error) {
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(sortName(a), sortName(b)) })
	var b bytes.Buffer
	for _, e := range entries {
		id, err := hex.DecodeString(string(e.OID))
		if err != nil || len(id) != sha1.Size || e.Name == "" || strings.ContainsAny(e.Name, "/\x00") {
			return nil, fmt.Errorf("entry %.100q: %w", e.Name, errMalformed)
		}
		b.WriteString(strings.TrimLeft(e.Mode, "0"))
		b.WriteByte(' ')
		b.WriteString(e.Name)
		b.WriteByte(0)
		b.Write(id)
	}
	return b.Bytes(), nil
}

// encodeCommit returns the content of a commit. The message is stored unchanged;
// no newline is added.
func encodeCommit(c *Commit) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", c.TreeID)
	for _, p := range c.ParentIDs {
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	fmt.Fprintf(&b, "author %s\ncommitter %s\n\n", encodeSignature(c.Author), encodeSignature(c.Committer))
	b.WriteString(strings.ReplaceAll(strings.ToValidUTF8(c.Message, "\uFFFD"), "\x00", ""))
	return b.Bytes()
}

// encodeSignature removes characters that would end a field, as git does. An empty
// name becomes "unknown".
func encodeSignature(s Signature) string {
	clean := func(text string) string {
		text = strings.ToValidUTF8(text, "\uFFFD")
		text = strings.Map(func(r rune) rune {
			if r < ' ' || r == '<' || r == '>' || r == 0x7f {
				return -1
			}
			return r
		}, text)
		return strings.Trim(text, " .,:;\"\\'")
	}
	name := clean(s.Name)
	if name == "" {
		name = "unknown"
	}
	when := s.When
	if when.IsZero() || when.Unix() < 0 {
		when = time.Unix(0, 0).UTC()
	}
	return fmt.Sprintf("%s <%s> %d %s", name, clean(s.Email), when.Unix(), when.Format("-0700"))
}
