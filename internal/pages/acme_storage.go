package pages

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"

	"svc/internal/db"
	"svc/internal/secret"
)

// acmeStorage is the storage of the ACME client in the database, shared by all
// nodes. All values are encrypted, because they include private keys.
type acmeStorage struct {
	s    *Service
	held sync.Map // locks of this process: from the name to the random value in the row
}

const (
	// lockTime is the time after which a lock expires. It is longer than
	// obtaining a certificate takes.
	lockTime = obtainTime + time.Minute
	lockPoll = 500 * time.Millisecond
)

func sealedAt(key string) string { return "pages_acme/value/" + key }

// Store implements certmagic.Storage.
func (a *acmeStorage) Store(ctx context.Context, key string, value []byte) error {
	return storeValue(ctx, a.s.DB, key, a.s.Keys.Seal(value, sealedAt(key)), len(value), a.s.Now())
}

// Load implements certmagic.Storage. It returns fs.ErrNotExist if the key does not
// exist.
func (a *acmeStorage) Load(ctx context.Context, key string) ([]byte, error) {
	sealed, _, _, err := findValue(ctx, a.s.DB, key)
	if err != nil {
		return nil, absent(err, key)
	}
	return a.s.Keys.Open(sealed, sealedAt(key))
}

// Delete implements certmagic.Storage.
func (a *acmeStorage) Delete(ctx context.Context, key string) error {
	return deleteValues(ctx, a.s.DB, key)
}

// Exists implements certmagic.Storage.
func (a *acmeStorage) Exists(ctx context.Context, key string) bool {
	names, err := listValues(ctx, a.s.DB, key, 1)
	return err == nil && len(names) > 0
}

// List implements certmagic.Storage.
func (a *acmeStorage) List(ctx context.Context, path string, recursive bool) ([]string, error) {
	names, err := listValues(ctx, a.s.DB, path, 100_000)
	if err != nil || recursive {
		return names, err
	}
	var list []string
	prefix := strings.TrimSuffix(path, "/") + "/"
	if path == "" {
		prefix = ""
	}
	for _, name := range names {
		rest, within := strings.CutPrefix(name, prefix)
		if !within {
			continue
		}
		first, _, _ := strings.Cut(rest, "/")
		if child := prefix + first; len(list) == 0 || list[len(list)-1] != child {
			list = append(list, child)
		}
	}
	return list, nil
}

// Stat implements certmagic.Storage.
func (a *acmeStorage) Stat(ctx context.Context, key string) (certmagic.KeyInfo, error) {
	_, size, at, err := findValue(ctx, a.s.DB, key)
	if err == nil {
		return certmagic.KeyInfo{Key: key, Modified: at, Size: size, IsTerminal: true}, nil
	}
	if a.Exists(ctx, key) {
		return certmagic.KeyInfo{Key: key}, nil
	}
	return certmagic.KeyInfo{}, absent(err, key)
}

// Lock implements certmagic.Locker. It waits until the lock is free or has
// expired.
func (a *acmeStorage) Lock(ctx context.Context, name string) error {
	holder := secret.Token("")
	for {
		got, err := takeLock(ctx, a.s.DB, name, holder, a.s.Now(), lockTime)
		if err != nil {
			return err
		}
		if got {
			a.held.Store(name, holder)
			return nil
		}
		timer := time.NewTimer(lockPoll)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}

// RenewLockLease extends a lock. An error means that the lock may belong to another
// process.
func (a *acmeStorage) RenewLockLease(ctx context.Context, name string, lease time.Duration) error {
	if err := keepLock(ctx, a.s.DB, name, a.holder(name), a.s.Now().Add(lease)); err != nil {
		return fmt.Errorf("renew the lock %s: %w", name, err)
	}
	return nil
}

// Unlock implements certmagic.Locker. It does not release a lock that expired
// and was taken by another process.
func (a *acmeStorage) Unlock(ctx context.Context, name string) error {
	defer a.held.Delete(name)
	return dropLock(ctx, a.s.DB, name, a.holder(name))
}

func (a *acmeStorage) holder(name string) string {
	holder, _ := a.held.Load(name)
	text, _ := holder.(string)
	return text
}

func absent(err error, key string) error {
	if errors.Is(err, db.ErrNoRows) {
		return fmt.Errorf("%s: %w", key, fs.ErrNotExist)
	}
	return err
}

func cleanText(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "?")
}
