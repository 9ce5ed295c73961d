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

// chunkSize is the number of plaintext bytes in a chunk of an encrypted stream. The
// last chunk may be shorter.
const chunkSize = 64 << 10

// chunkMore is the difference in size between an encrypted chunk and its plaintext.
const chunkMore = 16

// SealStream encrypts a stream of any size for a place, like Seal, with constant
// memory. It returns the encrypted stream and its sealed key. The key is stored in
// the database, so that a rotation of the instance key does not change the file.
func (k *Keyring) SealStream(plain io.Reader, place string) (sealedKey string, encrypted io.Reader) {
	dataKey := make([]byte, keyLen)
	rand.Read(dataKey) // never fails: the runtime ends the process instead
	return k.Seal(dataKey, streamPlace(place)), &chunkReader{from: plain, size: chunkSize, turn: newChunkCipher(dataKey).seal}
}

// OpenStream decrypts a stream that SealStream encrypted for the place. It returns
// ErrUnknownKey or ErrDamaged. The returned reader returns ErrDamaged if the stream
// was changed, truncated or extended; the data before the error is authentic.
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

// SealedSize returns the size of an encrypted stream for a size of its plaintext.
func SealedSize(plain int64) int64 {
	chunks := max((plain+chunkSize-1)/chunkSize, 1)
	return plain + chunks*chunkMore
}

func streamPlace(place string) string { return "stream/" + place }

// chunkCipher encrypts or decrypts the chunks of one stream. The key is used only
// for this stream, so the nonce is a counter. Its last byte marks the last chunk, so
// that a truncated stream is detected.
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

// chunkReader reads chunks of one size from a stream and returns the output of turn.
// It reads one byte ahead to detect the last chunk.
type chunkReader struct {
	from io.Reader
	size int
	turn func(to, chunk []byte, last bool) ([]byte, error)

	in    []byte // buffer for a chunk and one byte
	held  int    // number of bytes in in
	out   bytes.Reader
	buf   []byte
	ended bool // from has ended
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
