package git

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"svc/internal/git/object"
)

// Rejected is the reason why git rejected new objects, in git's words.
type Rejected struct{ Why string }

func (r *Rejected) Error() string { return "git rejects the objects: " + r.Why }

// special reports whether git or the file system of a client could take a name for
// one of git's own files (.git, .gitmodules, .mailmap), so that the objects must
// be checked. False positives are fine, false negatives are not: file systems fold
// case, ignore some non-ASCII characters (HFS+) and support short names with a
// tilde, streams and backslashes (NTFS).
func special(name string) bool {
	lower := strings.ToLower(name)
	return strings.HasPrefix(lower, ".git") || strings.HasPrefix(lower, ".mailmap") || strings.ContainsAny(name, `~:\`) ||
		strings.ContainsFunc(name, func(r rune) bool { return r >= 0x80 })
}

// specialPath reports whether a component of a path is special.
func specialPath(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if special(part) {
			return true
		}
	}
	return false
}

// hasSpecial reports whether a new tree contains a special name.
func (q *quarantine) hasSpecial() (bool, error) {
	found := false
	err := q.eachLoose(func(kind Type, content []byte) error {
		if kind != TypeTree || found {
			return nil
		}
		entries, err := object.ParseTree(content)
		found = slices.ContainsFunc(entries, func(e Entry) bool { return special(e.Name) })
		return err
	})
	return found, err
}

// strict lets git check the new objects like those of a push. It returns a
// *Rejected.
func (q *quarantine) strict(ctx context.Context) error {
	pack, err := q.pack()
	if err != nil {
		return fmt.Errorf("check new objects: %w", err)
	}
	c := command{work: writing, args: []string{"unpack-objects", "-q", "--strict=" + leniency}, env: q.env(), in: bytes.NewReader(pack)}
	_, err = q.repo.output(ctx, c)
	var failure *Error
	if errors.As(err, &failure) && failure.Kind == ErrCommand && failure.Exit > 0 {
		return &Rejected{Why: rejection(failure.Stderr)}
	}
	return err
}

// rejection returns the first error message of git.
func rejection(said string) string {
	for line := range strings.Lines(said) {
		if why, ok := strings.CutPrefix(line, "error: "); ok {
			if id, rest, ok := strings.Cut(strings.TrimPrefix(why, "object "), ": "); ok && len(id) == 40 {
				why = rest
			}
			return shorten(why)
		}
	}
	return "the objects are not well-formed"
}

// pack returns the new loose objects as a pack.
func (q *quarantine) pack() ([]byte, error) {
	kinds := map[Type]byte{TypeCommit: 1, TypeTree: 2, TypeBlob: 3, TypeTag: 4}
	var b bytes.Buffer
	b.WriteString("PACK\x00\x00\x00\x02\x00\x00\x00\x00") // the number of objects is set below
	n := uint32(0)
	err := q.eachLoose(func(kind Type, content []byte) error {
		n++
		size := len(content)
		head := kinds[kind]<<4 | byte(size&15)
		for size >>= 4; size > 0; size >>= 7 {
			b.WriteByte(head | 0x80)
			head = byte(size & 0x7f)
		}
		b.WriteByte(head)
		z, err := zlib.NewWriterLevel(&b, zlib.NoCompression)
		if err == nil {
			_, err = z.Write(content)
		}
		return errors.Join(err, z.Close())
	})
	binary.BigEndian.PutUint32(b.Bytes()[8:], n)
	sum := sha1.Sum(b.Bytes())
	b.Write(sum[:])
	return b.Bytes(), err
}

// eachLoose calls do for the loose objects of the quarantine.
func (q *quarantine) eachLoose(do func(kind Type, content []byte) error) error {
	files, err := filepath.Glob(filepath.Join(q.dir, "[0-9a-f][0-9a-f]", "*"))
	if err != nil {
		return err
	}
	for _, path := range files {
		if strings.HasPrefix(filepath.Base(path), "tmp_") {
			continue
		}
		kind, content, err := readLooseObject(path)
		if err == nil {
			err = do(kind, content)
		}
		if err != nil {
			return fmt.Errorf("read new object %s: %w", filepath.Base(path), err)
		}
	}
	return nil
}

func readLooseObject(path string) (Type, []byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	z, err := zlib.NewReader(f)
	if err != nil {
		return "", nil, err
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return "", nil, err
	}
	head, content, ok := bytes.Cut(text, []byte{0})
	kind, _, named := strings.Cut(string(head), " ")
	if !ok || !named {
		return "", nil, object.ErrMalformed
	}
	return Type(kind), content, nil
}
