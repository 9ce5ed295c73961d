package runner

import (
	"bytes"
	"io"
	"slices"
	"sync"
)

// maskedText is the text that replaces a secret.
const maskedText = "[MASKED]"

// masker is a writer that masks secrets, even if a secret is split over several
// writes: a possible start of a secret is held back until more bytes are written.
// Overlapping secrets are all masked.
type masker struct {
	mu       sync.Mutex
	out      io.Writer
	phrases  [][]byte  // secrets, which are masked completely
	prefixes [][]byte  // of tokens: the token bytes after a prefix are masked
	opens    [256]bool // first bytes of phrases and prefixes

	held   []byte  // bytes that are held back
	at     int64   // offset of the first held byte in the whole input
	hide   int64   // bytes before this offset belong to a phrase
	tokens []int64 // offsets at which the secret part of a token starts
	run    bool    // the current byte is in the secret part of a token
	shown  bool    // the last byte was not masked, so a masked byte writes maskedText
}

// newMasker returns a masker of phrases and token prefixes that writes to out.
func newMasker(out io.Writer, phrases, prefixes []string) *masker {
	m := &masker{out: out, shown: true}
	seen := map[string]bool{"": true}
	for _, p := range phrases {
		if !seen[p] {
			seen[p] = true
			m.phrases = append(m.phrases, []byte(p))
			m.opens[p[0]] = true
		}
	}
	for _, p := range prefixes {
		if p != "" {
			m.prefixes = append(m.prefixes, []byte(p))
			m.opens[p[0]] = true
		}
	}
	return m
}

// Write implements io.Writer.
func (m *masker) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held = append(m.held, p...)
	return len(p), m.pass(false)
}

// Flush writes the bytes that are held back. It is called after the last Write.
func (m *masker) Flush() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pass(true)
}

// pass writes, masked or not, all held bytes that are decided. last means that no
// more input follows.
func (m *masker) pass(last bool) error {
	var out []byte
	n := 0
	for ; n < len(m.held); n++ {
		rest, at := m.held[n:], m.at+int64(n)
		if m.opens[rest[0]] && !m.look(rest, at, last) {
			break
		}
		for len(m.tokens) > 0 && m.tokens[0] <= at {
			m.run, m.tokens = true, m.tokens[1:]
		}
		m.run = m.run && tokenByte(rest[0])
		hidden := m.run || at < m.hide
		switch {
		case !hidden:
			out = append(out, rest[0])
		case m.shown:
			out = append(out, maskedText...)
		}
		m.shown = !hidden
	}
	m.held, m.at = append(m.held[:0], m.held[n:]...), m.at+int64(n)
	if len(out) == 0 {
		return nil
	}
	_, err := m.out.Write(out)
	return err
}

// look searches for phrases and prefixes that start at an offset. It returns false
// if more input is needed to decide.
func (m *masker) look(rest []byte, at int64, last bool) bool {
	for _, list := range [][][]byte{m.phrases, m.prefixes} {
		for _, p := range list {
			if !last && len(rest) < len(p) && bytes.HasPrefix(p, rest) {
				return false
			}
		}
	}
	for _, p := range m.phrases {
		if bytes.HasPrefix(rest, p) {
			m.hide = max(m.hide, at+int64(len(p)))
		}
	}
	for _, p := range m.prefixes {
		if bytes.HasPrefix(rest, p) {
			m.tokens = append(m.tokens, at+int64(len(p)))
		}
	}
	if len(m.tokens) > 1 {
		slices.Sort(m.tokens)
	}
	return true
}

// tokenByte reports whether a byte may be part of a token.
func tokenByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '-' || b == '_' || b == '.' || b == '='
}
