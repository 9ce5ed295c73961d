package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"svc/internal/backup"
	"svc/internal/blob"
	"svc/internal/ci/joblog"
	"svc/internal/config"
	"svc/internal/db"
	"svc/internal/durable"
	"svc/internal/git"
	"svc/internal/repo/bucket"
)

// restoring is the name of the marker file that is in the data directory during a
// restore. An incomplete restore must not be served.
const restoring = "restore.incomplete"

// Restore fills an empty instance from a backup. On an error, it removes what it has
// restored. The database may be of another kind than the one that was backed up.
func Restore(ctx context.Context, cfg config.Config, file string, progress func(format string, args ...any)) (*backup.Manifest, error) {
	in, err := backup.Open(file, BackupParts(), func(done, size int64) { progress("checking: %s of %s", ByteSize(done), ByteSize(size)) })
	if err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	defer in.Close()
	r := &restore{cfg: cfg, in: in, progress: progress}
	if err := r.run(ctx); err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	return &in.Manifest, nil
}

// restore is a restore in progress.
type restore struct {
	cfg      config.Config
	in       *backup.Reader
	progress func(format string, args ...any)

	places []*place // the data directory is the first
	blobs  blob.Store
	git    *git.Engine
	db     *db.DB
	filled bool // the database was empty, and may have been filled since
}

func (r *restore) run(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, r.undo(context.WithoutCancel(ctx)))
		}
	}()
	for _, step := range []func(context.Context) error{r.claim, r.open, r.files, r.objects, r.repositories, r.rows, r.bucketRepositories} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return r.done(ctx)
}

// claim checks that the directories are empty and creates the marker file, so that
// no other process uses them.
func (r *restore) claim(context.Context) error {
	for _, name := range r.in.Manifest.Storages {
		if _, ok := r.cfg.Storages[name]; !ok {
			return fmt.Errorf("the backup has a storage %q: name a directory for it in SVC_STORAGES", name)
		}
	}
	mark := filepath.Join(r.cfg.DataDir, restoring)
	if _, err := os.Lstat(mark); err == nil {
		return fmt.Errorf("a restore into %s is running or was interrupted: empty the directory, the database and the object store, and restore again", r.cfg.DataDir)
	}
	var places []*place
	for _, dir := range slices.Concat([]string{r.cfg.DataDir}, storageDirs(r.cfg)) {
		p := newPlace(dir)
		if dir == r.cfg.DataDir && !r.in.Manifest.Key {
			p.keep = filepath.Join(dir, "secret.key")
			if _, err := os.Stat(p.keep); err != nil {
				return fmt.Errorf("the backup does not contain the instance key: copy it to %s first", p.keep)
			}
		}
		if err := p.survey(); err != nil {
			return err
		}
		places = append(places, p)
	}
	if err := r.fits(); err != nil {
		return err
	}
	if err := os.MkdirAll(r.cfg.DataDir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(mark, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err // if another restore created it, nothing must be removed
	}
	r.places = places
	return errors.Join(f.Sync(), f.Close(), durable.SyncDir(r.cfg.DataDir))
}

func storageDirs(cfg config.Config) []string {
	var dirs []string
	for _, dir := range cfg.Storages {
		dirs = append(dirs, dir)
	}
	slices.Sort(dirs)
	return dirs
}

// fits checks that there is enough disk space for the backup.
func (r *restore) fits() error {
	need := map[string]int64{r.cfg.DataDir: r.in.Manifest.Parts[backupData].Bytes}
	if r.cfg.BlobURL == "" {
		need[r.cfg.DataDir] += r.in.Manifest.Parts[backupBlobs].Bytes
	}
	err := r.in.Each(backupGit, func(e backup.Entry, _ io.Reader) error {
		storage, _, _ := strings.Cut(e.Name, "/")
		if _, ok := r.cfg.Buckets[storage]; !ok {
			need[r.cfg.Storages[storage]] += e.Size
		}
		return nil
	})
	if err == nil && r.cfg.DatabaseURL == "" {
		err = r.in.Each(backupRows, func(e backup.Entry, _ io.Reader) error {
			size, err := strconv.ParseInt(e.Meta[metaSize], 10, 64)
			need[r.cfg.DataDir] += size
			return err
		})
	}
	if err != nil {
		return err
	}
	return room(need)
}

// open opens the object store and the database, and checks that they are empty.
func (r *restore) open(ctx context.Context) (err error) {
	if r.git, err = git.New(git.Deps{}); err != nil {
		return err
	}
	store, err := blob.Open(ctx, string(r.cfg.BlobURL), r.cfg.DataDir)
	if err != nil {
		return err
	}
	for info, err := range store.List(ctx, "") {
		if err == nil {
			err = fmt.Errorf("the object store is not empty: it contains %s", info.Key)
		}
		return errors.Join(err, store.Close())
	}
	r.blobs = store
	if r.db, err = db.Open(ctx, string(r.cfg.DatabaseURL), filepath.Join(r.cfg.DataDir, "svc.db")); err != nil {
		return err
	}
	if err := r.db.Empty(ctx); err != nil {
		return fmt.Errorf("%w; set SVC_DATABASE_URL to an empty database", err)
	}
	return nil
}

// files restores the files of the data directory.
func (r *restore) files(ctx context.Context) error {
	return r.in.Each(backupData, func(e backup.Entry, in io.Reader) error {
		known := path.Dir(e.Name) == logFiles || slices.ContainsFunc(dataFiles(), func(name string) bool {
			return e.Name == name || strings.HasPrefix(e.Name, name+"/")
		})
		if !known {
			return errors.New("this version of svc does not know this file")
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		return writeFile(filepath.Join(r.cfg.DataDir, filepath.FromSlash(e.Name)), in)
	})
}

// writeFile writes and syncs a file.
func writeFile(name string, in io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	if err := durable.WriteNew(name, 0o600, in); err != nil {
		return err
	}
	return errors.Join(durable.SyncDir(filepath.Dir(name)), durable.SyncDir(filepath.Dir(filepath.Dir(name))))
}

func (r *restore) objects(ctx context.Context) error {
	n, all := int64(0), r.in.Manifest.Parts[backupBlobs].Entries
	return r.in.Each(backupBlobs, func(e backup.Entry, in io.Reader) error {
		r.progress("blobs: %d of %d", n, all)
		n++
		_, err := r.blobs.Put(ctx, e.Name, in, blob.Options{ContentType: e.Meta[metaType], Size: e.Size})
		return err
	})
}

func (r *restore) repositories(ctx context.Context) error { return r.unbundle(ctx, false) }

// bucketRepositories restores the repositories in object stores. It runs after the
// database is filled, because their refs are stored there.
func (r *restore) bucketRepositories(ctx context.Context) (err error) {
	if len(r.cfg.Buckets) == 0 {
		return nil
	}
	cfg := r.cfg
	b, err := openBuckets(ctx, &cfg, r.blobs, bucket.Deps{DB: r.db, Git: r.git, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	if err != nil {
		return err
	}
	r.cfg.Storages = cfg.Storages
	return errors.Join(r.unbundle(ctx, true), b.close())
}

// unbundle restores the repositories in object stores, or those in directories.
func (r *restore) unbundle(ctx context.Context, inBucket bool) error {
	n, all := int64(0), r.in.Manifest.Parts[backupGit].Entries
	return r.in.Each(backupGit, func(e backup.Entry, in io.Reader) error {
		r.progress("repositories: %d of %d", n, all)
		n++
		storage, name, _ := strings.Cut(e.Name, "/")
		name, ok := strings.CutSuffix(name, ".bundle")
		root, known := r.cfg.Storages[storage]
		if !ok || !known {
			return errors.New("it is not a repository of a storage")
		}
		if _, is := r.cfg.Buckets[storage]; is != inBucket {
			return nil
		}
		_, err := r.git.UnbundleAll(ctx, filepath.Join(root, filepath.FromSlash(name)), e.Meta[metaBranch], in)
		return err
	})
}

// rows fills the database, and takes over the logs of running jobs.
func (r *restore) rows(ctx context.Context) error {
	if err := r.db.Empty(ctx); err != nil {
		return err
	}
	r.filled = true
	err := r.db.Load(ctx, db.DumpVersion{Newest: r.in.Manifest.Schema, Pending: r.in.Manifest.PendingMigrations}, func(put func(db.DumpTable) error) error {
		return r.in.Each(backupRows, func(e backup.Entry, in io.Reader) error {
			table, ok := strings.CutSuffix(e.Name, ".ndjson.gz")
			if !ok {
				return errors.New("it is not a table")
			}
			r.progress("database: %s", table)
			size, err := strconv.ParseInt(e.Meta[metaSize], 10, 64)
			if err != nil {
				return err
			}
			columns, last, rows, err := backup.ReadRows(in, size)
			if err != nil {
				return err
			}
			return put(db.DumpTable{Name: table, Columns: columns, Last: last, Rows: rows})
		})
	})
	if err != nil {
		return err
	}
	return joblog.TakeOver(ctx, r.db, filepath.Join(r.cfg.DataDir, logFiles))
}

// done deletes the marker file, which completes the restore.
func (r *restore) done(ctx context.Context) error {
	if err := ctx.Err(); err != nil { // after this, the restore can no longer be canceled
		return err
	}
	if err := r.close(); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(r.cfg.DataDir, restoring)); err != nil {
		return err
	}
	return durable.SyncDir(r.cfg.DataDir)
}

// close closes the git engine, the object store and the database.
func (r *restore) close() error {
	var faults []error
	if r.git != nil {
		r.git.Close()
	}
	if r.blobs != nil {
		faults = append(faults, r.blobs.Close())
	}
	if r.db != nil {
		faults = append(faults, r.db.Close())
	}
	r.git, r.blobs, r.db = nil, nil, nil
	return errors.Join(faults...)
}

// undo removes the restored data. The marker file is removed last, and only if nothing
// else remains: no server may start on a part of the backup.
func (r *restore) undo(ctx context.Context) error {
	var faults []error
	if r.db != nil && r.filled {
		faults = append(faults, r.db.Wipe(ctx))
	}
	if r.blobs != nil {
		for info, err := range r.blobs.List(ctx, "") {
			if err == nil {
				err = r.blobs.Delete(ctx, info.Key)
			}
			faults = append(faults, err)
		}
	}
	faults = append(faults, r.close())
	for i, p := range slices.Backward(r.places) {
		if i == 0 && errors.Join(faults...) != nil {
			faults = append(faults, p.clearDir(p.root, filepath.Join(p.root, restoring)))
			continue
		}
		faults = append(faults, p.clear(restoring))
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("the data restored so far could not be removed: %w", err)
	}
	return nil
}
