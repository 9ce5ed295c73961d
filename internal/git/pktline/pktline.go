// Package pktline reads and writes packets, which frame what git sends: four hex
// digits of length, which count themselves, and the content. See
// gitprotocol-common(5).
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

// Kind tells packets with content from those that structure a conversation.
type Kind int

const (
	Data  Kind = iota
	Flush      // 0000 ends a list
	Delim      // 0001
	End        // 0002
)

// ErrMalformed refuses what is not a packet.
var ErrMalformed = errors.New("malformed packet")

// Read reads one packet. The end of input before it is io.EOF; within it
// is io.ErrUnexpectedEOF.
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

// Length is the number of bytes of the packet that b begins with, also
// of one without content; 0 when that is not yet known.
func Length(b []byte) (int, error) {
	if len(b) < 4 {
		return 0, nil
	}
	n, err := parseLength(b[:4])
	return max(n, 4), err
}

// ReadLine reads a packet that is text, without the line break at its end.
func ReadLine(in io.Reader) (string, Kind, error) {
	data, kind, err := Read(in)
	return strings.TrimSuffix(string(data), "\n"), kind, err
}

// Append adds a packet with the text, which is short.
func Append(to []byte, text string) []byte {
	return append(fmt.Appendf(to, "%04x", len(text)+4), text...)
}

// AppendFlush adds the packet that ends a list.
func AppendFlush(to []byte) []byte { return append(to, "0000"...) }

// Band writes to one of the channels of a side band.
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
