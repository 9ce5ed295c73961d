package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"svc/internal/db"
)

// keySetting is the settings row with the ID of the instance key.
const keySetting = "instance_key"

// claimKey returns an error if the database belongs to another instance key: a node
// with a key of its own would encrypt values that no other node can decrypt. The
// first start records the key in the database.
func (a *App) claimKey(ctx context.Context) error {
	ids := a.Keys.IDs()
	var owner string
	err := a.DB.Tx(ctx, func(tx *db.Tx) error {
		err := claimKey(ctx, tx, ids[0])
		if err != nil {
			return err
		}
		owner, err = keyOwner(ctx, tx)
		return err
	})
	if err != nil {
		return fmt.Errorf("check the instance key: %w", err)
	}
	if !slices.Contains(ids, owner) {
		return fmt.Errorf("%s is not the key of this database, which was created with key %s: copy the key file of the first node here", a.KeyFile(), owner)
	}
	return nil
}

// claimData locks the data directory of an embedded database. It returns an error if
// another process has locked it: each process would take the running background jobs
// of the other for interrupted ones. The kernel releases the lock when the process
// ends.
func (a *App) claimData() error {
	if a.DB.Postgres() {
		return nil
	}
	path := filepath.Join(a.Config.DataDir, "serve.lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("lock the data directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = fmt.Errorf("another svc process serves %s", a.Config.DataDir)
		}
		return errors.Join(err, f.Close())
	}
	a.claim = f
	return nil
}

// giveUpData releases the lock of the data directory. Closing the file is not
// enough, because a git process that is being started has it open until exec.
func (a *App) giveUpData() error {
	return errors.Join(syscall.Flock(int(a.claim.Fd()), syscall.LOCK_UN), a.claim.Close())
}
