package git

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Packets are how git frames what it says: four hex digits of length, which
// count themselves, and the content. See gitprotocol-common(5).

const (
	maxPacket = 65520 // with its length
	bandData  = maxPacket - 5
)

// pktKind is what a packet is.
type pktKind int

const (
	pktData  pktKind = iota
	pktFlush         // 0000 ends a list
	pktDelim         // 0001
	pktEnd           // 0002
)

var errPacket = errors.New("malformed packet")

// readPacket reads one packet. The end of input before it is io.EOF; within it
// is io.ErrUnexpectedEOF.
func readPacket(in io.Reader) ([]byte, pktKind, error) {
	var head [4]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, 0, err
	}
	n, err := parseLength(head[:])
	if err != nil {
		return nil, 0, err
	}
	if n < 3 {
		return nil, pktFlush + pktKind(n), nil
	}
	data := make([]byte, n-4)
	if _, err := io.ReadFull(in, data); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, 0, err
	}
	return data, pktData, nil
}

func parseLength(head []byte) (int, error) {
	n, err := strconv.ParseUint(string(head), 16, 16)
	if !isHex(string(head)) || err != nil || n == 3 || n > maxPacket {
		return 0, fmt.Errorf("%w: length %q", errPacket, head)
	}
	return int(n), nil
}

// packetLength is the number of bytes of the packet that b begins with, also
// of one without content; 0 when that is not yet known.
func packetLength(b []byte) (int, error) {
	if len(b) < 4 {
		return 0, nil
	}
	n, err := parseLength(b[:4])
	return max(n, 4), err
}

// readLine reads a packet that is text, without the line break at its end.
func readLine(in io.Reader) (string, pktKind, error) {
	data, kind, err := readPacket(in)
	return strings.TrimSuffix(string(data), "\n"), kind, err
}

// appendPacket adds a packet with the text, which is short.
func appendPacket(to []byte, text string) []byte {
	return append(fmt.Appendf(to, "%04x", len(text)+4), text...)
}

func appendFlush(to []byte) []byte { return append(to, "0000"...) }

// band writes to one of the channels of a side band.
type band struct {
	w       io.Writer
	channel byte
}

func (b band) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		n := min(len(p), bandData)
		packet := append(fmt.Appendf(nil, "%04x%c", n+5, b.channel), p[:n]...)
		if _, err := b.w.Write(packet); err != nil {
			return written, err
		}
		written += n
		p = p[n:]
	}
	return written, nil
}
