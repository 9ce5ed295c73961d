package object

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// EncodeTree returns the content of a tree and sorts its entries.
func EncodeTree(entries []Entry) ([]byte, error) {
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(SortName(a), SortName(b)) })
	var b bytes.Buffer
	for _, e := range entries {
		id, err := hex.DecodeString(string(e.OID))
		if err != nil || len(id) != sha1.Size || e.Name == "" || strings.ContainsAny(e.Name, "/\x00") {
			return nil, fmt.Errorf("entry %.100q: %w", e.Name, ErrMalformed)
		}
		b.WriteString(strings.TrimLeft(e.Mode, "0"))
		b.WriteByte(' ')
		b.WriteString(e.Name)
		b.WriteByte(0)
		b.Write(id)
	}
	return b.Bytes(), nil
}

// EncodeCommit returns the content of a commit. The message is stored unchanged;
// no newline is added.
func EncodeCommit(c *Commit) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", c.TreeID)
	for _, p := range c.ParentIDs {
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	fmt.Fprintf(&b, "author %s\ncommitter %s\n\n", EncodeSignature(c.Author), EncodeSignature(c.Committer))
	b.WriteString(strings.ReplaceAll(strings.ToValidUTF8(c.Message, "\uFFFD"), "\x00", ""))
	return b.Bytes()
}

// EncodeSignature returns a signature as it is in a commit or tag. Like git, it
// removes characters that would end a field. An empty name becomes "unknown".
func EncodeSignature(s Signature) string {
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
