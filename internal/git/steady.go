package git

import (
	"errors"
	"io"
	"time"
)

const (
	// packPatience is the time of waiting for a client after which it must have sent
	// enough of a pack.
	packPatience = 2 * time.Minute
	// packRate is how many bytes of a pack a client must send per second of waiting.
	packRate = 1 << 10
)

// errSlow means that a client sends its pack too slowly.
var errSlow = errors.New("the pack arrives too slowly")

// steady reads a pack from a client, which occupies a process as long as it sends. Only
// the time of waiting for the client counts.
type steady struct {
	in     io.Reader
	begun  bool // the pack has begun: before that, the client computes it
	waited time.Duration
	got    int64
}

func (s *steady) Read(b []byte) (int, error) {
	at := time.Now()
	n, err := s.in.Read(b)
	if !s.begun || err != nil {
		return n, err
	}
	s.got += int64(n)
	if s.waited += time.Since(at); s.waited < packPatience {
		return n, nil
	}
	if float64(s.got) < s.waited.Seconds()*packRate {
		return 0, errSlow
	}
	s.waited, s.got = 0, 0
	return n, nil
}
