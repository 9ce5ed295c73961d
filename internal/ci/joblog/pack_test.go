package joblog

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"

	"svc/internal/blob"
)

// countingStore counts the bytes that are read of its objects.
type countingStore struct {
	blob.Store
	read int
}

// Get implements blob.Store.
func (s *countingStore) Get(ctx context.Context, key string) (*blob.Object, error) {
	o, err := s.Store.Get(ctx, key)
	if err == nil {
		o.ReadSeekCloser = &countingReader{o.ReadSeekCloser, &s.read}
	}
	return o, err
}

type countingReader struct {
	io.ReadSeekCloser
	n *int
}

// Read implements io.Reader.
func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.ReadSeekCloser.Read(p)
	*r.n += n
	return n, err
}

// randomText returns a text that hardly compresses.
func randomText(size int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, size)
	for i := range text {
		text[i] = byte(' ' + r.IntN(95))
	}
	return text
}

// pack packs a text as a log.
func pack(t *testing.T, text []byte) (*packedLog, *countingStore) {
	t.Helper()
	disk, err := blob.Open(t.Context(), "", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = disk.Close() })
	store := &countingStore{Store: disk}
	if err := (&Store{Deps: Deps{Blobs: store}}).Pack(t.Context(), "log", bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	l := &packedLog{ctx: t.Context(), store: store, key: "log", size: int64(len(text))}
	t.Cleanup(func() { _ = l.Close() })
	return l, store
}

func TestPackedLog(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, frameSize - 1, frameSize, frameSize + 1, 3*frameSize + 5} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			text := randomText(size)
			l, store := pack(t, text)
			if got, err := io.ReadAll(l); err != nil || !bytes.Equal(got, text) {
				t.Fatalf("%d bytes, %v", len(got), err)
			}
			places := rand.New(rand.NewPCG(3, 4))
			for range 20 {
				at := places.IntN(size + 1)
				if _, err := l.Seek(int64(at), io.SeekStart); err != nil {
					t.Fatal(err)
				}
				want := text[at:min(size, at+100)]
				got := make([]byte, len(want))
				if _, err := io.ReadFull(l, got); err != nil || !bytes.Equal(got, want) {
					t.Fatalf("at %d: %q, want %q: %v", at, got, want, err)
				}
			}
			// Other zstd decoders read the same.
			o, err := store.Get(t.Context(), "log")
			if err != nil {
				t.Fatal(err)
			}
			defer o.Close()
			z, err := zstd.NewReader(o)
			if err != nil {
				t.Fatal(err)
			}
			defer z.Close()
			if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, text) {
				t.Errorf("as a plain file: %d bytes, %v", len(got), err)
			}
		})
	}
}

// TestPackedLogEnd reads the end of a long log without reading the rest.
func TestPackedLogEnd(t *testing.T) {
	t.Parallel()
	text := randomText(16 * frameSize)
	l, store := pack(t, text)
	if _, err := l.Seek(-10, io.SeekEnd); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(l)
	if err != nil || !bytes.Equal(got, text[len(text)-10:]) {
		t.Fatalf("the end is %q, %v", got, err)
	}
	if store.read > 2*frameSize {
		t.Errorf("%d bytes were read for the last 10", store.read)
	}
}

// FuzzReadFrames reads arbitrary seek tables: the frames are always within the file
// and in order.
func FuzzReadFrames(f *testing.F) {
	var packed bytes.Buffer
	if err := (&packer{}).frames(&packed, bytes.NewReader(randomText(2*frameSize+1))); err != nil {
		f.Fatal(err)
	}
	f.Add(packed.Bytes()[packed.Len()-100:])
	var small bytes.Buffer
	if err := (&packer{}).frames(&small, bytes.NewReader([]byte("x"))); err != nil {
		f.Fatal(err)
	}
	f.Add(small.Bytes())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, file []byte) {
		frames, err := readFrames(bytes.NewReader(file), int64(len(file)))
		if err != nil || len(frames) == 0 || frames[0] != (frame{}) {
			t.Fatalf("%v, %v", frames, err)
		}
		for i, at := range frames[1:] {
			if at.packed < frames[i].packed || at.plain < frames[i].plain || at.packed > int64(len(file)) {
				t.Fatalf("frame %d is at %+v, after %+v", i+1, at, frames[i])
			}
		}
	})
}
