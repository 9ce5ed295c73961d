package object

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"svc/internal/git/refstore"
)

func FuzzParseTree(f *testing.F) {
	id := strings.Repeat("\x01", 20)
	f.Add([]byte("100644 a\x00" + id + "40000 b\x00" + id))
	f.Add([]byte("100644 a\x00"))
	f.Add([]byte("10064 \x00" + id))
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, err := ParseTree(b)
		if err != nil {
			return
		}
		// A parsed tree can be encoded again, except for leading zeros of modes.
		var again bytes.Buffer
		for _, e := range entries {
			raw, err := hex.DecodeString(string(e.OID))
			if err != nil || len(raw) != 20 || e.Name == "" {
				t.Fatalf("%+v", e)
			}
			fmt.Fprintf(&again, "%s %s\x00%s", e.Mode, e.Name, raw)
		}
		twice, err := ParseTree(again.Bytes())
		if err != nil || !slices.Equal(entries, twice) {
			t.Errorf("%q: %v", b, err)
		}
	})
}

func FuzzParseCommit(f *testing.F) {
	f.Add([]byte("tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nparent " + string(refstore.ZeroOID) + "\nauthor A <a@x> 5 +0000\ncommitter A <a@x> 5 -0100\nencoding latin1\n\nm\n"))
	f.Add([]byte("\n\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseCommit(refstore.ZeroOID, b)
		if err != nil {
			return
		}
		for _, s := range []string{c.Message, c.Title, c.Author.Name, c.Author.Email, c.Committer.Name, c.Committer.Email} {
			if !utf8.ValidString(s) {
				t.Errorf("%q", s)
			}
		}
		if _, ok := refstore.ParseOID(string(c.TreeID)); !ok || strings.Contains(c.Title, "\n") {
			t.Errorf("%+v", c)
		}
		if _, err := c.Author.When.MarshalJSON(); err != nil {
			t.Error(err)
		}
	})
}

func FuzzParseTag(f *testing.F) {
	f.Add([]byte("object " + string(refstore.ZeroOID) + "\ntype commit\ntag v\ntagger T <t@x> 1 +0000\n\nm\n-----BEGIN PGP SIGNATURE-----\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		tag, err := ParseTag(refstore.ZeroOID, b)
		if err == nil && !(utf8.ValidString(tag.Name) && utf8.ValidString(tag.Message) && utf8.ValidString(string(tag.TargetType))) {
			t.Errorf("%+v", tag)
		}
	})
}
