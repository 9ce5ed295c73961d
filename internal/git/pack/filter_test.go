package pack

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"svc/internal/git/gittest"
)

// packEntry is an entry of a generated pack.
type packEntry struct {
	kind byte
	size uint64 // declared
	base []byte // reference to the base of a delta
	data []byte
}

func deflate(data []byte) []byte {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, _ = z.Write(data)
	_ = z.Close()
	return b.Bytes()
}

// makePack creates a pack with a valid checksum.
func makePack(entries ...packEntry) []byte {
	b := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(len(entries)))
	for _, e := range entries {
		first, rest := e.kind<<4|byte(e.size&15), e.size>>4
		for rest > 0 {
			b = append(b, first|0x80)
			first, rest = byte(rest&0x7f), rest>>7
		}
		b = append(append(b, first), e.base...)
		b = append(b, deflate(e.data)...)
	}
	sum := sha1.Sum(b)
	return append(b, sum[:]...)
}

func deltaSizes(base, result uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, base), result)
}

func TestFilter(t *testing.T) {
	t.Parallel()
	const most = 1000
	id := make([]byte, 20)
	blob := packEntry{kind: 3, size: 5, data: []byte("hello")}
	delta := func(base, result uint64) packEntry {
		data := append(deltaSizes(base, result), 1, 'x')
		return packEntry{kind: 7, size: uint64(len(data)), base: id, data: data}
	}
	long := delta(5, 6)
	long.kind, long.base = 6, bytes.Repeat([]byte{0x80}, 20)
	for name, c := range map[string]struct {
		pack []byte
		want error
	}{
		"empty":            {makePack(), nil},
		"blob":             {makePack(blob, blob), nil},
		"delta":            {makePack(blob, delta(5, 6)), nil},
		"offset":           {makePack(blob, packEntry{kind: 6, size: 4, base: []byte{14}, data: append(deltaSizes(5, 1), 1, 'x')}), nil},
		"at the limit":     {makePack(packEntry{kind: 3, size: most, data: make([]byte, most)}), nil},
		"large blob":       {makePack(packEntry{kind: 3, size: most + 1, data: make([]byte, most+1)}), ErrObjectSize},
		"large tree":       {makePack(packEntry{kind: 2, size: 1 << 40, data: []byte("x")}), ErrObjectSize},
		"huge":             {makePack(packEntry{kind: 2, size: 1<<64 - 1, data: []byte("x")}), ErrObjectSize},
		"large result":     {makePack(blob, delta(5, most+1)), ErrObjectSize},
		"huge result":      {makePack(blob, delta(5, 1<<63)), ErrObjectSize},
		"large base":       {makePack(blob, delta(most+1, 5)), ErrObjectSize},
		"short delta":      {makePack(blob, packEntry{kind: 7, size: 1, base: id, data: []byte{5}}), ErrMalformed},
		"longer than said": {makePack(packEntry{kind: 3, size: 4, data: []byte("hello")}), ErrMalformed},
		"shorter":          {makePack(packEntry{kind: 3, size: 6, data: []byte("hello")}), ErrMalformed},
		"type 5":           {makePack(packEntry{kind: 5, size: 5, data: []byte("hello")}), ErrMalformed},
		"type 0":           {makePack(packEntry{kind: 0, size: 5, data: []byte("hello")}), ErrMalformed},
		"long offset":      {makePack(long), ErrMalformed},
		"cut off":          {makePack(blob)[:20], ErrMalformed},
		"not deflated":     {append([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01\x35"), "hello, this is not deflated"...), ErrMalformed},
		"many":             {[]byte("PACK\x00\x00\x00\x02\xff\xff\xff\xff"), ErrTooLarge},
		"other":            {[]byte("KCAP\x00\x00\x00\x02\x00\x00\x00\x00"), ErrMalformed},
	} {
		in := bufio.NewReader(bytes.NewReader(append(bytes.Clone(c.pack), "rest"...)))
		var out bytes.Buffer
		err := copyPack(&out, in, most, nil)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if !bytes.HasPrefix(c.pack, out.Bytes()) {
			t.Errorf("%s: something else was passed on", name)
		}
		if rest, _ := io.ReadAll(in); c.want == nil && (string(rest) != "rest" || out.Len() != len(c.pack)) {
			t.Errorf("%s: %d of %d bytes were passed on, %q is left", name, out.Len(), len(c.pack), rest)
		}
	}
}

// TestFilterTotal checks packs whose objects are each within the limit, but exceed it
// together.
func TestFilterTotal(t *testing.T) {
	t.Parallel()
	const most = 512 << 20
	delta := func(base, result uint64) packEntry {
		data := append(deltaSizes(base, result), 1, 'x')
		return packEntry{kind: 7, size: uint64(len(data)), base: make([]byte, 20), data: data}
	}
	repeat := func(e packEntry, n int) (list []packEntry) {
		for range n {
			list = append(list, e)
		}
		return list
	}
	noise := make([]byte, 1<<20)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	for name, c := range map[string]struct {
		entries []packEntry
		max     int64
		large   int
		want    error
	}{
		"small":             {repeat(delta(5, 1<<20), 63), most, 0, nil},
		"large":             {repeat(delta(5, 1<<20), 66), most, 1, nil},
		"large bases":       {repeat(delta(1<<20, 5), 66), most, 1, nil},
		"two large results": {repeat(delta(5, 500<<20), 2), most, 1, nil},
		"many results":      {repeat(delta(1<<20, 500<<20), 20), most, 1, ErrTotal},
		"many bases":        {repeat(delta(500<<20, 1<<20), 20), most, 1, ErrTotal},
		// A file of 16 MiB whose versions differ in one line.
		"small deltas":       {repeat(delta(16<<20, 16<<20), 125), most, 1, ErrTotal},
		"with as much data":  {append([]packEntry{{kind: 3, size: 1 << 20, data: noise}}, repeat(delta(16<<20, 16<<20), 125)...), most, 1, nil},
		"raised":             {repeat(delta(5, 500<<20), 20), 8 << 30, 1, nil},
		"lowered":            {repeat(delta(5, 16<<20), 60), 16 << 20, 1, nil},
		"lowered, with many": {repeat(delta(5, 16<<20), 125), 16 << 20, 1, ErrTotal},
	} {
		pack, calls := makePack(c.entries...), 0
		var out bytes.Buffer
		err := copyPack(&out, bufio.NewReader(bytes.NewReader(pack)), c.max, func() error { calls++; return nil })
		if !errors.Is(err, c.want) || c.want == nil && !bytes.Equal(out.Bytes(), pack) || calls != c.large {
			t.Errorf("%s: %d of %d bytes, %d calls: %v", name, out.Len(), len(pack), calls, err)
		}
	}
	errBusy := errors.New("busy")
	// A large pack is not copied before Large returns.
	var out bytes.Buffer
	pack := makePack(repeat(delta(5, 65<<20), 1)...)
	if err := copyPack(&out, bufio.NewReader(bytes.NewReader(pack)), most, func() error { return errBusy }); !errors.Is(err, errBusy) || out.Len() > 0 {
		t.Errorf("%d bytes: %v", out.Len(), err)
	}
}

// TestFilterPackOfGit checks that packs of git are copied unchanged.
func TestFilterPackOfGit(t *testing.T) {
	t.Parallel()
	g := gittest.Generate(t, gittest.Size{Commits: 200, Files: 50})
	g.Git("repack", "-adq")
	packs, err := filepath.Glob(filepath.Join(g.Path, "objects/pack/*.pack"))
	if err != nil || len(packs) == 0 {
		t.Fatal(packs, err)
	}
	for _, name := range packs {
		pack, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := copyPack(&out, bufio.NewReader(bytes.NewReader(pack)), 1<<20, nil); err != nil || !bytes.Equal(out.Bytes(), pack) {
			t.Errorf("%d of %d bytes: %v", out.Len(), len(pack), err)
		}
	}
}

// FuzzFilter checks that the output is a prefix of the input, and that the buffer is
// bounded.
func FuzzFilter(f *testing.F) {
	f.Add(makePack(packEntry{kind: 3, size: 5, data: []byte("hello")}))
	f.Add(makePack(packEntry{kind: 7, size: 4, base: make([]byte, 20), data: append(deltaSizes(5, 6), 1, 'x')}))
	f.Add(makePack(packEntry{kind: 2, size: 1 << 40, data: []byte("x")}))
	f.Fuzz(func(t *testing.T, pack []byte) {
		var out bytes.Buffer
		in := &Filter{In: bufio.NewReader(bytes.NewReader(pack)), Out: &out, MaxObject: 1 << 16}
		err := in.Run()
		if !bytes.HasPrefix(pack, out.Bytes()) {
			t.Error("something else was passed on")
		}
		if cap(in.held) > 4*passBytes {
			t.Errorf("%d bytes were held", cap(in.held))
		}
		// Each object costs at most its declared size, which is checked.
		if objects := int64(len(pack)) / 2; in.inflated > (objects+1)<<16 || in.inflated > 1100*int64(len(pack)) {
			t.Errorf("%d bytes were inflated of %d: %v", in.inflated, len(pack), err)
		}
	})
}

func copyPack(out io.Writer, in *bufio.Reader, maxObject int64, large func() error) error {
	return (&Filter{In: in, Out: out, MaxObject: maxObject, Large: large}).Run()
}
