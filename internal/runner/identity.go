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

	"svc/internal/durable"
)

// SystemID returns the ID by which the server distinguishes this machine from
// others with the same token. It is generated once and stored in the directory of
// the runner.
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
	if err := durable.Replace(path, []byte(id+"\n")); err != nil {
		return "", fmt.Errorf("name of the machine: %w", err)
	}
	return id, nil
}

func random(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
