package secret

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// chunkSize is how many bytes of plaintext a chunk of an encrypted stream has.
// All chunks but the last have this size.
const chunkSize = 64 << 10

// chunkMore is how much larger an encrypted chunk is than its plaintext.
const chunkMore = 16

// SealStream encrypts a stream of any size for one place: the counterpart of
// Seal for files, in bounded memory. It returns the encrypted stream and the
// sealed key of this stream, which is stored in the database, so that a rotation
// of the instance key does not touch the file.
func (k *Keyring) SealStream(plain io.Reader, place string) (sealedKey string, encrypted io.Reader) {
	dataKey := make([]byte, keyLen)
	rand.Read(dataKey) // never fails: the runtime ends the process instead
	return k.Seal(dataKey, streamPlace(place)), &chunkReader{from: plain, size: chunkSize, turn: newChunkCipher(dataKey).seal}
}

// OpenStream decrypts what SealStream encrypted for the place. It returns
// ErrUnknownKey or ErrDamaged; the returned reader returns ErrDamaged for a
// stream that was changed, cut short or extended. What it has returned before
// that is authentic.
func (k *Keyring) OpenStream(encrypted io.Reader, sealedKey, place string) (io.Reader, error) {
	dataKey, err := k.Open(sealedKey, streamPlace(place))
	if err != nil {
		return nil, err
	}
	if len(dataKey) != keyLen {
		return nil, ErrDamaged
	}
	return &chunkReader{from: encrypted, size: chunkSize + chunkMore, turn: newChunkCipher(dataKey).open}, nil
}

// SealedSize returns the size of an encrypted stream with so many bytes of
// plaintext.
func SealedSize(plain int64) int64 {
	chunks := max((plain+chunkSize-1)/chunkSize, 1)
	return plain + chunks*chunkMore
}

func streamPlace(place string) string { return "stream/" + place }

// chunkCipher encrypts the chunks of one stream. The key is used for this stream
// only, so the nonce is a counter; its last byte marks the last chunk, so that a
// stream that was cut short does not open.
type chunkCipher struct {
	aead cipher.AEAD
	n    uint64
}

func newChunkCipher(raw []byte) *chunkCipher {
	block, err := aes.NewCipher(raw)
	if err != nil {
		panic(err) // the length is always keyLen
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // the block is always AES
	}
	return &chunkCipher{aead: aead}
}

func (c *chunkCipher) nonce(last bool) []byte {
	nonce := make([]byte, c.aead.NonceSize())
	binary.BigEndian.PutUint64(nonce, c.n)
	if last {
		nonce[len(nonce)-1] = 1
	}
	c.n++
	return nonce
}

func (c *chunkCipher) seal(to, chunk []byte, last bool) ([]byte, error) {
	return c.aead.Seal(to, c.nonce(last), chunk, nil), nil
}

func (c *chunkCipher) open(to, chunk []byte, last bool) ([]byte, error) {
	plain, err := c.aead.Open(to, c.nonce(last), chunk, nil)
	if err != nil {
		return nil, fmt.Errorf("open encrypted stream: %w", ErrDamaged)
	}
	return plain, nil
}

// chunkReader reads chunks of one size from a stream and returns what turn makes
// of them. It reads one byte ahead to know which chunk is the last.
type chunkReader struct {
	from io.Reader
	size int
	turn func(to, chunk []byte, last bool) ([]byte, error)

	in    []byte // a chunk and one byte
	held  int    // bytes in in
	out   bytes.Reader
	buf   []byte
	ended bool // the source has ended
	done  bool // the last chunk is in out
	err   error
}

// Read implements io.Reader.
func (r *chunkReader) Read(p []byte) (int, error) {
	for r.out.Len() == 0 {
		if r.err != nil {
			return 0, r.err
		}
		if r.done {
			return 0, io.EOF
		}
		r.err = r.next()
	}
	return r.out.Read(p)
}

func (r *chunkReader) next() error {
	if r.in == nil {
		r.in = make([]byte, r.size+1)
	}
	// Not io.ReadFull: a source that ends with io.ErrUnexpectedEOF, as the body of
	// an interrupted request does, must not look complete.
	for r.held < len(r.in) && !r.ended {
		n, err := r.from.Read(r.in[r.held:])
		r.held += n
		switch {
		case errors.Is(err, io.EOF):
			r.ended = true
		case err != nil:
			return err
		}
	}
	chunk := r.in[:min(r.held, r.size)]
	r.done = r.ended && r.held <= r.size
	out, err := r.turn(r.buf[:0], chunk, r.done)
	if err != nil {
		return err
	}
	r.buf = out
	r.out.Reset(out)
	r.held = copy(r.in, r.in[len(chunk):r.held])
	return nil
}
