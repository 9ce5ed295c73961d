package sshd

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// errSilent ends a fetch whose client says nothing.
var errSilent = errors.New("the client sent nothing for too long")

// negotiation bounds how long a client of a fetch may be silent while git waits
// for its wants and haves: a git process, and its slot, wait with it. Bytes in
// either direction are progress. After the client's "done" only the server has
// something to say, and the time no longer counts.
//
// It is for versions 0 and 1 of the protocol. The requests of version 2 are read
// whole before a process starts.
type negotiation struct {
	in      io.Reader
	out     io.Writer
	silence time.Duration
	packets packetScanner // of in

	mu    sync.Mutex
	timer *time.Timer // nil when it is over
}

// newNegotiation calls end when the client has been silent for too long.
func newNegotiation(in io.Reader, out io.Writer, silence time.Duration, end func()) *negotiation {
	return &negotiation{in: in, out: out, silence: silence, timer: time.AfterFunc(silence, end)}
}

// Read implements io.Reader: what the client says.
func (n *negotiation) Read(p []byte) (int, error) {
	count, err := n.in.Read(p)
	if n.packets.scan(p[:count]) {
		n.stop()
	}
	n.progress(count)
	return count, err
}

// Write implements io.Writer: what git says.
func (n *negotiation) Write(p []byte) (int, error) {
	count, err := n.out.Write(p)
	n.progress(count)
	return count, err
}

func (n *negotiation) progress(bytes int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if bytes > 0 && n.timer != nil {
		n.timer.Reset(n.silence)
	}
}

// stop ends the limit.
func (n *negotiation) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.timer != nil {
		n.timer.Stop()
		n.timer = nil
	}
}

// packetScanner finds the packet "done" in a stream of pkt-lines.
type packetScanner struct {
	head []byte // of a packet, up to its length and four bytes
	skip int    // bytes that are left of a packet
	off  bool   // the stream has no packets
}

// scan goes on, and reports whether the packet has come.
func (s *packetScanner) scan(p []byte) (done bool) {
	for len(p) > 0 && !s.off {
		if s.skip > 0 {
			n := min(s.skip, len(p))
			s.skip, p = s.skip-n, p[n:]
			continue
		}
		s.head, p = append(s.head, p[0]), p[1:]
		if len(s.head) < 4 {
			continue
		}
		size := 0
		for _, c := range s.head[:4] {
			switch {
			case c >= '0' && c <= '9':
				size = size<<4 | int(c-'0')
			case c|0x20 >= 'a' && c|0x20 <= 'f':
				size = size<<4 | int(c|0x20-'a'+10)
			default:
				s.off = true // git will refuse it
				return false
			}
		}
		switch {
		case size >= 8 && len(s.head) < 8:
			continue
		case size >= 8 && size <= 9 && string(s.head[4:]) == "done":
			done = true
			s.skip = size - 8
		case size > len(s.head):
			s.skip = size - len(s.head)
		}
		s.head = s.head[:0]
	}
	return done
}

// fetch runs a fetch, and ends it when the client is silent for too long. The
// error is errSilent then.
func (x *session) fetch(ctx context.Context, run func(ctx context.Context, in io.Reader, out io.Writer) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	n := newNegotiation(x.channel, pacedWriter{x}, x.Limits.Silence, func() { cancel(errSilent) })
	defer n.stop()
	err := run(ctx, n, n)
	if errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	return err
}
