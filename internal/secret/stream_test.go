package secret

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

func TestStream(t *testing.T) {
	t.Parallel()
	k := newKeyring(t)
	for _, size := range []int{0, 1, chunkSize - 1, chunkSize, chunkSize + 1, 3 * chunkSize, 3*chunkSize + 17} {
		plain := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
		key, stream := k.SealStream(iotest.HalfReader(bytes.NewReader(plain)), "x/1")
		sealed, err := io.ReadAll(stream)
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(sealed)) != SealedSize(int64(size)) {
			t.Errorf("size %d: sealed has %d bytes, want %d", size, len(sealed), SealedSize(int64(size)))
		}
		open := func(sealed []byte, place string) ([]byte, error) {
			r, err := k.OpenStream(iotest.OneByteReader(bytes.NewReader(sealed)), key, place)
			if err != nil {
				return nil, err
			}
			return io.ReadAll(r)
		}
		got, err := open(sealed, "x/1")
		if err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("size %d: %d bytes, %v", size, len(got), err)
		}
		damaged := bytes.Clone(sealed)
		damaged[len(damaged)/2] ^= 1
		swapped := sealed
		if size > 2*chunkSize {
			const whole = chunkSize + chunkMore
			swapped = append(append(bytes.Clone(sealed[whole:2*whole]), sealed[:whole]...), sealed[2*whole:]...)
		}
		for name, bad := range map[string][]byte{
			"changed": damaged, "cut": sealed[:len(sealed)-1], "cut at a chunk": sealed[:(len(sealed)-1)/(chunkSize+chunkMore)*(chunkSize+chunkMore)],
			"extended": append(bytes.Clone(sealed), 0), "swapped": swapped,
		} {
			if name == "swapped" && size <= 2*chunkSize {
				continue
			}
			if _, err := open(bad, "x/1"); !errors.Is(err, ErrDamaged) {
				t.Errorf("size %d, %s: %v, want ErrDamaged", size, name, err)
			}
		}
		if _, err := open(sealed, "x/2"); !errors.Is(err, ErrDamaged) {
			t.Errorf("other place: %v", err)
		}
	}
	_, stream := k.SealStream(iotest.ErrReader(io.ErrClosedPipe), "x")
	if _, err := io.ReadAll(stream); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("error of the source: %v", err)
	}
	_, stream = k.SealStream(io.MultiReader(bytes.NewReader(make([]byte, 10)), iotest.ErrReader(io.ErrUnexpectedEOF)), "x")
	if _, err := io.ReadAll(stream); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a source that was cut off: %v", err)
	}
}
