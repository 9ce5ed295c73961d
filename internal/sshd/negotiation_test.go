package sshd

import (
	"fmt"
	"testing"
)

// TestPacketScanner finds the end of a negotiation however the input is split into
// reads.
func TestPacketScanner(t *testing.T) {
	t.Parallel()
	want := "0032want " + fmt.Sprintf("%040d", 1) + "\n"
	for stream, found := range map[string]bool{
		want + "00000009done\n":                true,
		want + "00000008done":                  true,
		want + "0000":                          false,
		"0000":                                 false,
		want + want + "0000" + "000ahave x":    false,
		"000edone later" + "0000":              false,
		"0006xx" + "0009done\n":                true,
		"hello, this is no packet, 0009done\n": false,
	} {
		for step := 1; step <= len(stream); step++ {
			s, got := packetScanner{}, false
			for at := 0; at < len(stream); at += step {
				got = s.scan([]byte(stream[at:min(at+step, len(stream))])) || got
			}
			if got != found {
				t.Errorf("%q in steps of %d: %v", stream, step, got)
			}
		}
	}
}
