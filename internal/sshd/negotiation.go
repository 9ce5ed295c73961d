package sshd

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// errSilent ends a fetch whose client sends nothing.
var errSilent = errors.New("the client sent nothing for too long")

// negotiation limits how long the client of a fetch may send nothing while git waits
// for its wants and haves, because the git process occupies a slot. Bytes in either
// direction are progress. After the client's "done" only the server sends, and the
// limit ends.
//
// It is used for versions 0 and 1 of the protocol. Requests of version 2 are read
// completely before a process starts.
type negotiation struct {
	in      io.Reader
	out     io.Writer
	silence time.Duration
	packets packetScanner // of in

	mu    sync.Mutex
	timer *time.Timer // nil after the end
}

// newNegotiation returns a negotiation that calls end when the client has sent
// nothing for too long.
func newNegotiation(in io.Reader, out io.Writer, silence time.Duration, end func()) *negotiation {
	return &negotiation{in: in, out: out, silence: silence, timer: time.AfterFunc(silence, end)}
}

// Read implements io.Reader.
func (n *negotiation) Read(p []byte) (int, error) {
	count, err := n.in.Read(p)
	if n.packets.scan(p[:count]) {
		n.stop()
	}
	n.progress(count)
	return count, err
}

// Write implements io.Writer.
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
	head []byte // start of a packet: its length and four bytes
	skip int    // remaining bytes of a packet
	off  bool   // the stream does not consist of packets
}

// scan processes the next bytes, and reports whether the packet was found.
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
				s.off = true // git rejects it
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

// fetch runs a fetch, and ends it with errSilent if the client sends nothing for too
// long.
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
