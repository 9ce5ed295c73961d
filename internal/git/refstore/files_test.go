package refstore

import (
	"strings"
	"testing"
)

func FuzzParsePacked(f *testing.F) {
	f.Add([]byte("# pack-refs with: peeled fully-peeled sorted \n" + string(ZeroOID) + " refs/tags/a\n^" + strings.Repeat("e", 40) + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parsePacked(b)
		if err != nil {
			return
		}
		for _, r := range p.refs {
			if len(r.id) != 40 || r.name == "" {
				t.Errorf("%+v", r)
			}
		}
	})
}
