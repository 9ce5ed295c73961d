package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"svc/internal/backup"
	"svc/internal/blob"
	"svc/internal/config"
	"svc/internal/db"
	"svc/internal/git"
)

// restoring is a file in the data directory while a restore is under way: what
// is there then is not whole, and is not served.
const restoring = "restore.incomplete"

// Restore fills an empty installation from a backup: all of it or, with an
// error, nothing. The database may be of another kind than the one that was
// backed up.
func Restore(ctx context.Context, cfg config.Config, file string, tell func(format string, args ...any)) (*backup.Manifest, error) {
	in, err := backup.Open(file, func(read int64) { tell("checking: %d MiB", read>>20) })
	if err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	defer in.Close()
	r := &restore{cfg: cfg, in: in, tell: tell}
	if err = r.prepare(ctx); err == nil {
		err = r.fill(ctx)
	}
	if err != nil {
		err = errors.Join(err, r.undo(context.WithoutCancel(ctx)))
	}
	if err = errors.Join(err, r.close()); err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	return &in.Manifest, nil
}

// restore is a restore under way.
type restore struct {
	cfg  config.Config
	in   *backup.Reader
	tell func(format string, args ...any)

	blobs  blob.Store
	git    *git.Engine
	undos  []func(context.Context) error
	marked bool
}

func (r *restore) close() error {
	if r.git != nil {
		r.git.Close()
	}
	if r.blobs != nil {
		return r.blobs.Close()
	}
	return nil
}

// prepare looks whether there is nothing yet, and marks the place.
func (r *restore) prepare(ctx context.Context) error {
	for _, name := range r.in.Manifest.Storages {
		if _, ok := r.cfg.Storages[name]; !ok {
			return fmt.Errorf("the backup has a storage %q: name a directory for it in SVC_STORAGES", name)
		}
	}
	if err := os.MkdirAll(r.cfg.DataDir, 0o700); err != nil {
		return err
	}
	key := filepath.Join(r.cfg.DataDir, "secret.key")
	_, err := os.Stat(key)
	if !r.in.Manifest.Key && err != nil {
		return fmt.Errorf("the backup was made without the instance key: put it to %s first", key)
	}
	entries, err := os.ReadDir(r.cfg.DataDir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == "secret.key" && !r.in.Manifest.Key {
			continue
		}
		if e.Name() == restoring {
			return fmt.Errorf("an earlier restore into %s was cut off: remove what is in there, in the database and in the object store", r.cfg.DataDir)
		}
		return fmt.Errorf("%s is not empty: there is %s", r.cfg.DataDir, e.Name())
	}
	for name, root := range r.cfg.Storages {
		if list, err := os.ReadDir(root); err == nil && len(list) > 0 {
			return fmt.Errorf("storage %s is not empty: there is %s", name, filepath.Join(root, list[0].Name()))
		}
	}
	if r.blobs, err = blob.Open(ctx, string(r.cfg.BlobURL), r.cfg.DataDir); err != nil {
		return err
	}
	r.undos = append(r.undos, func(context.Context) error { return os.RemoveAll(filepath.Join(r.cfg.DataDir, "blobs")) })
	for info, err := range r.blobs.List(ctx, "") {
		if err == nil {
			err = fmt.Errorf("the object store is not empty: there is %s", info.Key)
		}
		return err
	}
	if r.git, err = git.New(git.Deps{}); err != nil {
		return err
	}
	if err := r.freshDatabase(ctx); err != nil {
		return err
	}
	r.marked = true
	return os.WriteFile(filepath.Join(r.cfg.DataDir, restoring), nil, 0o600)
}

// freshDatabase looks whether there is nothing in a database that is elsewhere.
func (r *restore) freshDatabase(ctx context.Context) error {
	if r.cfg.DatabaseURL == "" {
		return nil // its file would be in the data directory
	}
	d, err := db.Open(ctx, string(r.cfg.DatabaseURL), "")
	if err != nil {
		return err
	}
	have, _, err := d.Version(ctx)
	if err == nil && have > 0 {
		err = errors.New("the database is not empty: name a new one in SVC_DATABASE_URL")
	}
	return errors.Join(err, d.Close())
}

// fill puts everything to its place; the database comes last, and with it all
// the rest counts.
func (r *restore) fill(ctx context.Context) error {
	for _, step := range []func(context.Context) error{r.files, r.objects, r.repositories, r.rows} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return os.Remove(filepath.Join(r.cfg.DataDir, restoring))
}

// undo removes what was put to its place.
func (r *restore) undo(ctx context.Context) error {
	var faults []error
	for _, undo := range r.undos {
		faults = append(faults, undo(ctx))
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("and what was restored so far could not be removed: %w", err)
	}
	if !r.marked {
		return nil
	}
	return os.Remove(filepath.Join(r.cfg.DataDir, restoring))
}

func (r *restore) files(context.Context) error {
	return r.in.Each(backupData, func(name string, _ int64, in io.Reader) error {
		if !local(name) {
			return errors.New("the name leads elsewhere")
		}
		to := filepath.Join(r.cfg.DataDir, name)
		top, _, _ := strings.Cut(name, "/")
		r.undos = append(r.undos, func(context.Context) error { return os.RemoveAll(filepath.Join(r.cfg.DataDir, top)) })
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		return writeFile(to, in)
	})
}

// writeFile writes a file that is on disk when it returns.
func writeFile(name string, in io.Reader) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, in)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func (r *restore) objects(ctx context.Context) error {
	types := map[string]string{}
	err := r.in.Each(backupBlobs+"/types", func(key string, size int64, in io.Reader) error {
		text, err := io.ReadAll(io.LimitReader(in, 1<<10))
		if kind := string(text); kind != "application/octet-stream" {
			types[key] = kind // most have none of their own
		}
		return err
	})
	if err != nil {
		return err
	}
	n := 0
	return r.in.Each(backupBlobs+"/objects", func(key string, size int64, in io.Reader) error {
		if string(r.cfg.BlobURL) != "" {
			r.undos = append(r.undos, func(ctx context.Context) error { return r.blobs.Delete(ctx, key) })
		}
		n++
		r.tell("blobs: %d", n)
		_, err := r.blobs.Put(ctx, key, in, blob.Options{ContentType: types[key], Size: size})
		return err
	})
}

func (r *restore) repositories(ctx context.Context) error {
	for _, root := range r.cfg.Storages {
		r.undos = append(r.undos, func(context.Context) error { return emptyDir(root) })
	}
	index := map[string]repositoryIndex{}
	err := r.in.Each(backupGit, func(name string, _ int64, in io.Reader) error {
		base, ok := strings.CutSuffix(name, ".json")
		if !ok {
			return nil
		}
		var one repositoryIndex
		if err := json.NewDecoder(in).Decode(&one); err != nil {
			return err
		}
		if _, ok := r.cfg.Storages[one.Storage]; !ok || !local(one.Path) {
			return fmt.Errorf("it lies on storage %q at %q", one.Storage, one.Path)
		}
		index[base] = one
		return nil
	})
	if err != nil {
		return err
	}
	n := 0
	return r.in.Each(backupGit, func(name string, _ int64, in io.Reader) error {
		base, ok := strings.CutSuffix(name, ".bundle")
		if !ok {
			return nil
		}
		one, ok := index[base]
		if !ok {
			return errors.New("nothing says where it lies")
		}
		n++
		r.tell("repositories: %d of %d", n, len(index))
		_, err := r.git.UnbundleAll(ctx, filepath.Join(r.cfg.Storages[one.Storage], filepath.FromSlash(one.Path)), one.Branch, in)
		return err
	})
}

// emptyDir removes what is in a directory.
func emptyDir(dir string) error {
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range list {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// rows fills the database. While the mark is there nobody serves it.
func (r *restore) rows(ctx context.Context) (err error) {
	r.tell("database")
	file := filepath.Join(r.cfg.DataDir, "svc.db")
	if r.cfg.DatabaseURL == "" {
		r.undos = append(r.undos, func(context.Context) error {
			var faults []error
			for _, end := range []string{"", "-wal", "-shm", ".lock", ".migrate"} {
				if err := os.Remove(file + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
					faults = append(faults, err)
				}
			}
			return errors.Join(faults...)
		})
	}
	d, err := db.Open(ctx, string(r.cfg.DatabaseURL), file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return d.Load(ctx, r.in.Manifest.Schema, func(put func(db.DumpTable) error) error {
		return r.in.Each(backupRows, func(name string, _ int64, in io.Reader) error {
			table, ok := strings.CutSuffix(name, ".ndjson.gz")
			if !ok {
				return errors.New("it is no table")
			}
			columns, last, rows, err := backup.ReadRows(in)
			if err != nil {
				return err
			}
			return put(db.DumpTable{Name: table, Columns: columns, Last: last, Rows: rows})
		})
	})
}
