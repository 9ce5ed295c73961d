package runner

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// SystemID is the name by which the server tells this machine from others with
// the same token. It is made up once and kept in the runner's directory.
func SystemID(dir string) (string, error) {
	path := filepath.Join(dir, "system_id")
	text, err := os.ReadFile(path)
	if id := strings.TrimSpace(string(text)); err == nil && id != "" {
		return id, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("name of the machine: %w", err)
	}
	id := "r_" + random(6)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("name of the machine: %w", err)
	}
	if err := WriteFile(path, []byte(id+"\n")); err != nil {
		return "", fmt.Errorf("name of the machine: %w", err)
	}
	return id, nil
}

// WriteFile writes a file that only its owner may read, whole or not at all.
func WriteFile(path string, text []byte) error {
	temp := path + ".new-" + random(4)
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return nil
}

func random(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
