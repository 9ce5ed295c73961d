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

// ErrUnknownKey is the error of a value sealed with a key that the key file
// does not hold: the file of another instance, or an old copy of it.
var ErrUnknownKey = errors.New("unknown key")

// ErrDamaged is the error of a value that is not what Seal made for its
// place: changed, cut short, or moved from elsewhere.
var ErrDamaged = errors.New("damaged value")

const (
	keyLen     = 32 // AES-256
	sealedForm = "s1"
)

// Keyring encrypts values with the instance keys of a file. The newest key
// seals, every key opens. It may be used by many goroutines at once.
type Keyring struct {
	path string

	mu   sync.RWMutex
	keys []key       // oldest first, at least one
	file os.FileInfo // what keys were read from
}

// key is one instance key, with what is derived from it. Each use has its own
// subkey, so none can be turned against another.
type key struct {
	id   string
	raw  []byte
	wrap cipher.AEAD // seals data keys
}

// LoadKeyring reads the key file, and makes one with a first key when there
// is none; of several processes that start at once, all get the same key. The
// file must be readable by its owner alone. Errors name the file.
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

// Reload reads the key file again when it has changed, so that a running
// server seals with a key that another process added. Open needs no reload.
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

// Rotate adds a key to the file and seals with it from now on. Values sealed
// before still open; Reseal brings them to the new key.
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

// IDs returns the ids of the keys, oldest first; the last one seals. They reveal
// nothing about the keys.
func (k *Keyring) IDs() []string {
	k.mu.RLock()
	defer k.mu.RUnlock()
	ids := make([]string, len(k.keys))
	for i, key := range k.keys {
		ids[i] = key.id
	}
	return ids
}

// Seal encrypts a value for one place, such as "ci_variables/value/17": it
// opens with the same place only, so values cannot be swapped in the database.
// Each value has its own data key, wrapped by the instance key.
func (k *Keyring) Seal(plaintext []byte, place string) string {
	dataKey := make([]byte, keyLen)
	rand.Read(dataKey) // never fails: the runtime ends the process instead
	payload := newAEAD(dataKey).Seal(nil, nil, plaintext, payloadData(place))
	return k.newest().seal(dataKey, payload)
}

// Open decrypts what Seal made for the place. It returns ErrUnknownKey or
// ErrDamaged.
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

// Reseal wraps the data key of a value with the newest key and leaves the
// encrypted value itself as it is, so it needs no place. The answer is false
// when there was nothing to change. It returns ErrUnknownKey or ErrDamaged.
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

// Derive returns a key of 32 bytes for another use, such as signing cookies.
// The same label gives the same key forever: it comes from the oldest key.
func (k *Keyring) Derive(label string) []byte {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return subkey(k.keys[0].raw, "derive/"+label, keyLen)
}

// Format keeps the keys out of logs, whatever verb prints them.
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

// find returns the key of an id. A key it does not know may have been added by
// another process: then it reads the file again.
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
		// The id is derived from the key, so that a damaged key file is
		// detected when it is read.
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
		panic(err) // n is far below the bound of HKDF
	}
	return b
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func decode(s string) ([]byte, error) {
	// The decoder skips line breaks, and then two texts would mean one value.
	if strings.ContainsAny(s, "\r\n") {
		return nil, fmt.Errorf("%w: line break", ErrDamaged)
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil {
		return nil, fmt.Errorf("%w: not base64", ErrDamaged)
	}
	return b, nil
}
