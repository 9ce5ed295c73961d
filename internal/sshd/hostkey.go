package sshd

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"

	"svc/internal/durable"
)

// hostKey is a type of host key. Keys without make are used only if the operator has
// created the file.
type hostKey struct {
	file string
	make func() (crypto.PrivateKey, error)
}

func hostKeys() []hostKey {
	return []hostKey{
		{"ssh_host_ed25519_key", func() (crypto.PrivateKey, error) {
			_, key, err := ed25519.GenerateKey(rand.Reader)
			return key, err
		}},
		// For clients that do not support Ed25519.
		{"ssh_host_ecdsa_key", func() (crypto.PrivateKey, error) {
			return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		}},
		{"ssh_host_rsa_key", nil},
	}
}

// HostKeys reads the host keys from a directory. It creates the directory and
// missing keys. The files have the format and the names of OpenSSH.
func HostKeys(dir string) ([]ssh.Signer, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("host keys: %w", err)
	}
	var keys []ssh.Signer
	for _, k := range hostKeys() {
		path := filepath.Join(dir, k.file)
		key, err := readHostKey(path)
		if errors.Is(err, fs.ErrNotExist) {
			if k.make == nil {
				continue
			}
			if err := makeHostKey(path, k); err != nil {
				return nil, fmt.Errorf("make host key %s: %w", path, err)
			}
			key, err = readHostKey(path)
		}
		if err != nil {
			return nil, fmt.Errorf("host key %s: %w", path, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func readHostKey(path string) (ssh.Signer, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 {
		return nil, fmt.Errorf("it is open to others (mode %04o): chmod 600 it", perm)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	key, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, errors.New("it is not a private key without a passphrase")
	}
	return key, nil
}

// makeHostKey creates a key file. If another node has created it at the same time,
// that file is kept.
func makeHostKey(path string, k hostKey) error {
	key, err := k.make()
	if err != nil {
		return err
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		return err
	}
	return durable.Create(path, pem.EncodeToMemory(block))
}
