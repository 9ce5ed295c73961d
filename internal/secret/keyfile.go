package secret

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"svc/internal/durable"
)

const (
	keyFileHead = "# Instance keys, oldest first. Encrypted values cannot be read without\n" +
		"# this file: keep a copy of it, apart from the copies of the database.\n" +
		keyFileForm + "\n"
	keyFileForm = "keyring 1"
	maxKeyFile  = 1 << 20
)

// create creates the key file with a first key. If another process has created it in
// the meantime, create reads that file.
func (k *Keyring) create() error {
	return locked(k.path, func() error {
		err := k.Reload()
		if errors.Is(err, os.ErrNotExist) {
			return k.store([]key{newKey()})
		}
		return err
	})
}

// store writes the keys to the key file and uses them. The caller must hold the
// lock.
func (k *Keyring) store(keys []key) error {
	if err := writeKeys(k.path, keys); err != nil {
		return err
	}
	file, err := os.Stat(k.path)
	if err != nil {
		return err
	}
	k.set(keys, file)
	return nil
}

// readKeys reads a key file and returns its keys and file info.
func readKeys(path string) ([]key, os.FileInfo, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	file, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !file.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("key file %s is not a regular file", path)
	}
	if perm := file.Mode().Perm(); perm&0o077 != 0 {
		return nil, nil, fmt.Errorf("key file %s is open to others (mode %04o): chmod 600 it", path, perm)
	}
	if file.Size() > maxKeyFile {
		return nil, nil, fmt.Errorf("key file %s is too large", path)
	}
	keys, err := parseKeys(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return nil, nil, fmt.Errorf("key file %s: %w", path, err)
	}
	return keys, file, nil
}

// parseKeys parses a key file. Errors do not contain the keys.
func parseKeys(r io.Reader) ([]key, error) {
	var keys []key
	seen := map[string]bool{}
	formed := false
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case !formed:
			if line != keyFileForm {
				return nil, fmt.Errorf("line %d: want %q", n, keyFileForm)
			}
			formed = true
		default:
			key, err := parseKey(line)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
			if seen[key.id] {
				return nil, fmt.Errorf("line %d: key %s is listed twice", n, key.id)
			}
			seen[key.id] = true
			keys = append(keys, key)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, errors.New("it holds no key")
	}
	return keys, nil
}

func parseKey(line string) (key, error) {
	id, text, ok := strings.Cut(line, " ")
	if !ok || !isID(id) {
		return key{}, errors.New("want an id and a key")
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != keyLen {
		return key{}, fmt.Errorf("key %s is not %d bytes in base64", id, keyLen)
	}
	k := makeKey(raw)
	if k.id != id {
		return key{}, fmt.Errorf("key %s does not match its ID: the file is damaged", id)
	}
	return k, nil
}

// writeKeys replaces the key file atomically: after a crash it has the old or the
// new content.
func writeKeys(path string, keys []key) error {
	var text bytes.Buffer
	text.WriteString(keyFileHead)
	for _, k := range keys {
		fmt.Fprintf(&text, "%s %s\n", k.id, base64.StdEncoding.EncodeToString(k.raw))
	}
	return durable.Replace(path, text.Bytes())
}

// locked runs fn with a lock against changes of the key file by other processes. It
// locks a separate file, because the key file is replaced.
func locked(path string, fn func() error) error {
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close() // releases the lock
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return fn()
}
