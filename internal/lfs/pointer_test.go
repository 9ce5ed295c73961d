package lfs

import (
	"strings"
	"testing"
)

const someOID = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393"

func TestParsePointer(t *testing.T) {
	t.Parallel()
	const head = "version https://git-lfs.github.com/spec/v1\n"
	for name, tt := range map[string]struct {
		text string
		size int64
		ok   bool
	}{
		"usual":           {head + "oid sha256:" + someOID + "\nsize 12345\n", 12345, true},
		"without an end":  {head + "oid sha256:" + someOID + "\nsize 12345", 12345, true},
		"Windows":         {head + "oid sha256:" + someOID + "\r\nsize 12345\r\n", 12345, true},
		"old":             {"version https://hawser.github.com/spec/v1\noid sha256:" + someOID + "\nsize 1\n", 1, true},
		"extension":       {head + "ext-0-foo sha256:" + someOID + "\noid sha256:" + someOID + "\nsize 1\n", 1, true},
		"empty":           {"", 0, false},
		"no size":         {head + "oid sha256:" + someOID + "\nname 12345\n", 0, false},
		"negative":        {head + "oid sha256:" + someOID + "\nsize -1\n", 0, false},
		"huge":            {head + "oid sha256:" + someOID + "\nsize 99999999999999999999\n", 0, false},
		"two sizes":       {head + "oid sha256:" + someOID + "\nsize 1\nsize 2\n", 0, false},
		"two IDs":         {head + "oid sha256:" + someOID + "\noid sha256:" + someOID + "\nsize 1\n", 0, false},
		"upper case":      {head + "oid sha256:" + strings.ToUpper(someOID) + "\nsize 1\n", 0, false},
		"short":           {head + "oid sha256:" + someOID[1:] + "\nsize 12345\n", 0, false},
		"other algorithm": {head + "oid sha512:" + someOID + "\nsize 12345\n", 0, false},
		"other version":   {"version https://git-lfs.github.com/spec/v2\noid sha256:" + someOID + "\nsize 1\n", 0, false},
		"line of a word":  {head + "oid sha256:" + someOID + "\nsize 1\nword\n", 0, false},
		"long":            {head + "oid sha256:" + someOID + "\nsize 1\nx " + strings.Repeat("x", MaxPointer) + "\n", 0, false},
	} {
		p, ok := ParsePointer([]byte(tt.text))
		if ok != tt.ok || ok && (p.OID != someOID || p.Size != tt.size) {
			t.Errorf("%s: %+v %t", name, p, ok)
		}
	}
}

func FuzzParsePointer(f *testing.F) {
	f.Add([]byte("version https://git-lfs.github.com/spec/v1\noid sha256:" + someOID + "\nsize 12345\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if p, ok := ParsePointer(text); ok && (!ValidOID(p.OID) || p.Size < 0) {
			t.Errorf("%q gives %+v", text, p)
		}
	})
}
