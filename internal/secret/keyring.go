package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
)

// ErrUnknownKey means that a value was sealed with a key that is not in the key
// file, for example because the file is an old copy or belongs to another instance.
var ErrUnknownKey = errors.New("unknown key")

// ErrDamaged means that a value was not sealed for its place, or was changed or
// truncated.
var ErrDamaged = errors.New("damaged value")

const (
	keyLen     = 32 // AES-256
	sealedForm = "s1"
)

// Keyring encrypts values with the instance keys of a key file. The newest key
// seals, all keys open. It is safe for concurrent use.
type Keyring struct {
	path string

	mu   sync.RWMutex
	keys []key       // oldest first, at least one
	file os.FileInfo // file info of the key file when keys were read
}

// key is an instance key with its derived values. Each purpose has a separate
// subkey, so that a ciphertext of one purpose cannot be used for another.
type key struct {
	id   string
	raw  []byte
	wrap cipher.AEAD // seals data keys
}

// LoadKeyring reads the key file. If it does not exist, LoadKeyring creates it with
// a first key; processes that start concurrently get the same key. The file must be
// readable only by its owner. Errors contain the path of the file.
func LoadKeyring(path string) (*Keyring, error) {
	k := &Keyring{path: path}
	err := k.Reload()
	if errors.Is(err, os.ErrNotExist) {
		err = k.create()
	}
	if err != nil {
		return nil, fmt.Errorf("load keyring: %w", err)
	}
	return k, nil
}

// Reload reads the key file again if it has changed, so that a running server seals
// with a key that another process added. Open does not need it.
func (k *Keyring) Reload() error {
	file, err := os.Stat(k.path)
	if err != nil {
		return err
	}
	k.mu.RLock()
	same := k.file != nil && os.SameFile(file, k.file) && file.ModTime().Equal(k.file.ModTime()) && file.Size() == k.file.Size()
	k.mu.RUnlock()
	if same {
		return nil
	}
	keys, file, err := readKeys(k.path)
	if err != nil {
		return err
	}
	k.set(keys, file)
	return nil
}

// Rotate adds a key to the file, which is used to seal from now on. Values that were
// sealed before can still be opened; Reseal seals them with the new key.
func (k *Keyring) Rotate() error {
	err := locked(k.path, func() error {
		// Another process may have rotated since the file was read.
		keys, _, err := readKeys(k.path)
		if err != nil {
			return err
		}
		return k.store(append(keys, newKey()))
	})
	if err != nil {
		return fmt.Errorf("rotate keyring: %w", err)
	}
	return nil
}

// IDs returns the IDs of the keys, oldest first; the last key seals. IDs are not
// secret.
func (k *Keyring) IDs() []string {
	k.mu.RLock()
	defer k.mu.RUnlock()
	ids := make([]string, len(k.keys))
	for i, key := range k.keys {
		ids[i] = key.id
	}
	return ids
}

// Seal encrypts a value for a place, such as "ci_variables/value/17". It can only be
// opened with the same place, so values cannot be swapped in the database. Each
// value has its own data key, which is encrypted with the instance key.
func (k *Keyring) Seal(plaintext []byte, place string) string {
	dataKey := make([]byte, keyLen)
	rand.Read(dataKey) // never fails: the runtime ends the process instead
	payload := newAEAD(dataKey).Seal(nil, nil, plaintext, payloadData(place))
	return k.newest().seal(dataKey, payload)
}

// Open decrypts a value that Seal encrypted for the place. It returns ErrUnknownKey
// or ErrDamaged.
func (k *Keyring) Open(sealed, place string) ([]byte, error) {
	_, dataKey, payload, err := k.unwrap(sealed)
	if err != nil {
		return nil, fmt.Errorf("open sealed value: %w", err)
	}
	plaintext, err := newAEAD(dataKey).Open(nil, nil, payload, payloadData(place))
	if err != nil {
		return nil, fmt.Errorf("open sealed value: %w, or not of this place", ErrDamaged)
	}
	return plaintext, nil
}

// Reseal encrypts the data key of a value with the newest key. It does not change
// the encrypted value, so it needs no place. It returns false if the newest key was
// used already. Errors: ErrUnknownKey, ErrDamaged.
func (k *Keyring) Reseal(sealed string) (string, bool, error) {
	id, dataKey, payload, err := k.unwrap(sealed)
	if err != nil {
		return "", false, fmt.Errorf("reseal value: %w", err)
	}
	newest := k.newest()
	if id == newest.id {
		return sealed, false, nil
	}
	return newest.seal(dataKey, payload), true, nil
}

// Derive returns a key of 32 bytes for another purpose, such as signing cookies. It
// is derived from the oldest key, so a label always has the same key.
func (k *Keyring) Derive(label string) []byte {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return subkey(k.keys[0].raw, "derive/"+label, keyLen)
}

// Format implements fmt.Formatter. It keeps the keys out of logs, for all verbs.
func (k *Keyring) Format(s fmt.State, _ rune) { fmt.Fprintf(s, "keyring %s", k.path) }

func (k *Keyring) newest() key {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.keys[len(k.keys)-1]
}

func (k *Keyring) set(keys []key, file os.FileInfo) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keys, k.file = keys, file
}

func (k *Keyring) unwrap(sealed string) (id string, dataKey, payload []byte, err error) {
	parts := strings.Split(sealed, ".")
	if len(parts) != 4 || parts[0] != sealedForm {
		return "", nil, nil, fmt.Errorf("%w: not of the form %s.key.wrapped.payload", ErrDamaged, sealedForm)
	}
	id = parts[1]
	wrapped, err := decode(parts[2])
	if err != nil {
		return "", nil, nil, err
	}
	payload, err = decode(parts[3])
	if err != nil {
		return "", nil, nil, err
	}
	key, err := k.find(id)
	if err != nil {
		return "", nil, nil, err
	}
	dataKey, err = key.wrap.Open(nil, nil, wrapped, wrapData(id))
	if err != nil || len(dataKey) != keyLen {
		return "", nil, nil, ErrDamaged
	}
	return id, dataKey, payload, nil
}

// find returns the key with an ID. If the ID is unknown, it reads the file again,
// because another process may have added the key.
func (k *Keyring) find(id string) (key, error) {
	if !isID(id) {
		return key{}, fmt.Errorf("%w: no key id", ErrDamaged)
	}
	if key, ok := k.lookup(id); ok {
		return key, nil
	}
	if err := k.Reload(); err != nil {
		return key{}, fmt.Errorf("%w %s: %w", ErrUnknownKey, id, err)
	}
	if key, ok := k.lookup(id); ok {
		return key, nil
	}
	return key{}, fmt.Errorf("%w %s: not in %s", ErrUnknownKey, id, k.path)
}

func (k *Keyring) lookup(id string) (key, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	i := slices.IndexFunc(k.keys, func(c key) bool { return c.id == id })
	if i < 0 {
		return key{}, false
	}
	return k.keys[i], true
}

func newKey() key {
	raw := make([]byte, keyLen)
	rand.Read(raw) // never fails: the runtime ends the process instead
	return makeKey(raw)
}

func makeKey(raw []byte) key {
	return key{
		// The ID is derived from the key, so that a damaged key file is detected
		// when it is read.
		id:   hex.EncodeToString(subkey(raw, "id", 8)),
		raw:  raw,
		wrap: newAEAD(subkey(raw, "wrap", keyLen)),
	}
}

func isID(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 8
}

func (k key) seal(dataKey, payload []byte) string {
	wrapped := k.wrap.Seal(nil, nil, dataKey, wrapData(k.id))
	return strings.Join([]string{sealedForm, k.id, encode(wrapped), encode(payload)}, ".")
}

// wrapData and payloadData return the additional data of a ciphertext: its
// purpose, so that one ciphertext cannot replace another.
func wrapData(id string) []byte       { return []byte(sealedForm + "/key/" + id) }
func payloadData(place string) []byte { return []byte(sealedForm + "/value/" + place) }

func newAEAD(raw []byte) cipher.AEAD {
	block, err := aes.NewCipher(raw)
	if err != nil {
		panic(err) // the length is always keyLen
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // the block is always AES
	}
	return aead
}

func subkey(raw []byte, label string, n int) []byte {
	b, err := hkdf.Key(sha256.New, raw, nil, "keyring/"+label, n)
	if err != nil {
		panic(err) // n is far below the limit of HKDF
	}
	return b
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func decode(s string) ([]byte, error) {
	// The decoder ignores line breaks, so a value would have several encodings.
	if strings.ContainsAny(s, "\r\n") {
		return nil, fmt.Errorf("%w: line break", ErrDamaged)
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil {
		return nil, fmt.Errorf("%w: not base64", ErrDamaged)
	}
	return b, nil
}
