package pktline

import (
	"bytes"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBand(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if _, err := (Band{W: &b, Channel: 2}).Write(bytes.Repeat([]byte("x"), 150_000)); err != nil {
		t.Fatal(err)
	}
	var sizes []int
	for {
		data, kind, err := Read(&b)
		if err == io.EOF {
			break
		}
		if err != nil || kind != Data || data[0] != 2 {
			t.Fatal(kind, err)
		}
		sizes = append(sizes, len(data)-1)
	}
	if d := cmp.Diff([]int{65515, 65515, 18970}, sizes); d != "" {
		t.Error(d)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("0009hello000000010002"))
	f.Add([]byte("fff0"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bytes.NewReader(in)
		var again []byte
		for {
			before := len(in) - r.Len()
			data, kind, err := Read(r)
			if err != nil {
				return
			}
			switch kind {
			case Data:
				again = Append(nil, string(data))
			default:
				again = []byte([]string{"0000", "0001", "0002"}[kind-Flush])
			}
			if got := in[before : len(in)-r.Len()]; !bytes.EqualFold(got[:4], again[:4]) || !bytes.Equal(got[4:], again[4:]) {
				t.Fatalf("%q became %q", got, again)
			}
		}
	})
}
