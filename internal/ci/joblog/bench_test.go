package joblog

import (
	"bytes"
	"io"
	"sync"
	"testing"

	"svc/internal/blob"
)

// sampleLog returns a text that compresses like a build log.
func sampleLog(size int) []byte {
	line := []byte("\x1b[32;1m$ go build ./...\x1b[0;m compiling package 0123456789 of the module, please wait\n")
	return bytes.Repeat(line, size/len(line)+1)[:size]
}

// BenchmarkAppend appends a chunk of 4 KiB to one of 100 logs.
func BenchmarkAppend(b *testing.B) {
	l := &segmentStore{dir: b.TempDir(), limit: segmentSize}
	chunk := sampleLog(4 << 10)
	b.SetBytes(int64(len(chunk)))
	for i := 0; b.Loop(); i++ {
		job, at := int64(i%100), int64(i/100*len(chunk))
		if _, err := l.add(b.Context(), job, at, chunk); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEnd appends 16 KiB to each of 100 logs and syncs them concurrently, as
// jobs that end at the same time do.
func BenchmarkEnd(b *testing.B) {
	l := &segmentStore{dir: b.TempDir(), limit: segmentSize}
	chunk := sampleLog(16 << 10)
	for round := int64(0); b.Loop(); round++ {
		var wg sync.WaitGroup
		for job := range int64(100) {
			wg.Go(func() {
				id := round*100 + job
				if _, err := l.add(b.Context(), id, 0, chunk); err != nil {
					b.Error(err)
				}
				if err := l.sync(b.Context(), id); err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
		b.StopTimer()
		for job := range int64(100) {
			if err := l.remove(b.Context(), round*100+job); err != nil {
				b.Fatal(err)
			}
		}
		b.StartTimer()
	}
}

// BenchmarkPack packs a log of 16 MiB.
func BenchmarkPack(b *testing.B) {
	text := sampleLog(16 << 20)
	s := benchStore(b)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if err := s.Pack(b.Context(), "log", bytes.NewReader(text)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPackedEnd reads the last 10 bytes of a packed log of 64 MiB.
func BenchmarkPackedEnd(b *testing.B) {
	text := sampleLog(64 << 20)
	s := benchStore(b)
	if err := s.Pack(b.Context(), "log", bytes.NewReader(text)); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		l := s.OpenPacked(b.Context(), "log", int64(len(text)))
		if _, err := l.Seek(-10, io.SeekEnd); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadAll(l); err != nil {
			b.Fatal(err)
		}
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func benchStore(b *testing.B) *Store {
	b.Helper()
	disk, err := blob.Open(b.Context(), "", b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = disk.Close() })
	return &Store{Deps: Deps{Blobs: disk}}
}
