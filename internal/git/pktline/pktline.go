// Package pktline reads and writes packets of the git protocol: four hex digits with the
// length, including themselves, and the content. See gitprotocol-common(5).
package pktline

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const (
	maxPacket = 65520 // with its length
	bandData  = maxPacket - 5
)

// Kind distinguishes packets with content from special packets.
type Kind int

const (
	Data  Kind = iota
	Flush      // 0000 ends a list
	Delim      // 0001
	End        // 0002
)

// ErrMalformed means that the input is not a valid packet.
var ErrMalformed = errors.New("malformed packet")

// Read reads one packet. It returns io.EOF at the end of the input, and
// io.ErrUnexpectedEOF within a packet.
func Read(in io.Reader) ([]byte, Kind, error) {
	var head [4]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, 0, err
	}
	n, err := parseLength(head[:])
	if err != nil {
		return nil, 0, err
	}
	if n < 3 {
		return nil, Flush + Kind(n), nil
	}
	data := make([]byte, n-4)
	if _, err := io.ReadFull(in, data); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, 0, err
	}
	return data, Data, nil
}

func parseLength(head []byte) (int, error) {
	n, err := strconv.ParseUint(string(head), 16, 16)
	if err != nil || n == 3 || n > maxPacket {
		return 0, fmt.Errorf("%w: length %q", ErrMalformed, head)
	}
	return int(n), nil
}

// Length returns the length of the packet at the start of b, also for special packets; 0 if
// it is not known yet.
func Length(b []byte) (int, error) {
	if len(b) < 4 {
		return 0, nil
	}
	n, err := parseLength(b[:4])
	return max(n, 4), err
}

// ReadLine reads a packet with text, without its trailing newline.
func ReadLine(in io.Reader) (string, Kind, error) {
	data, kind, err := Read(in)
	return strings.TrimSuffix(string(data), "\n"), kind, err
}

// Append appends a packet with a short text.
func Append(to []byte, text string) []byte {
	return append(fmt.Appendf(to, "%04x", len(text)+4), text...)
}

// AppendFlush appends a flush packet, which ends a list.
func AppendFlush(to []byte) []byte { return append(to, "0000"...) }

// Band writes to a channel of a side band.
type Band struct {
	W       io.Writer
	Channel byte
}

func (b Band) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		n := min(len(p), bandData)
		packet := append(fmt.Appendf(nil, "%04x%c", n+5, b.Channel), p[:n]...)
		if _, err := b.W.Write(packet); err != nil {
			return written, err
		}
		written += n
		p = p[n:]
	}
	return written, nil
}
