package refstore

import (
	"strings"
	"testing"
)

func TestReflogLines(t *testing.T) {
	t.Parallel()
	a, b, c := OID(strings.Repeat("a", 40)), OID(strings.Repeat("b", 40)), OID(strings.Repeat("c", 40))
	log := string(ZeroOID) + " " + string(a) + " svc <svc@localhost> 1700000000 +0000\tpush\n" +
		string(a) + " " + string(b) + " x " + string(c) + "\n" + string(c)
	for id, want := range map[OID]bool{ZeroOID: true, a: true, b: false, c: false, "": false} {
		if got, err := inReflog(strings.NewReader(log), id); got != want || err != nil {
			t.Errorf("%.8s: %v, %v", id, got, err)
		}
	}
}
