package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"svc/internal/actor"
	"svc/internal/backup"
	"svc/internal/config"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/repo"
)

// The directories of a backup.
const (
	backupData  = "data"
	backupRows  = "database"
	backupGit   = "repositories"
	backupBlobs = "blobs"
)

// BackupOptions say what a backup is to hold.
type BackupOptions struct {
	File string
	// WithoutKey leaves the instance key out, for one who keeps it elsewhere.
	WithoutKey bool
	// Tell is told what is being done.
	Tell func(format string, args ...any)
}

// Backup writes all that the installation holds into one file, while servers
// run on it. The database comes first, as it is at one moment; what it names is
// there by then, and stays until somebody deletes it: what is gone when its turn
// comes is named in the manifest.
func (a *App) Backup(ctx context.Context, o BackupOptions) (*backup.Manifest, error) {
	w, err := backup.Create(o.File, a.tempDir())
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	defer w.Abort()
	m := &backup.Manifest{Program: config.Version(), CreatedAt: a.now().UTC(), Database: "sqlite", Storages: slices.Sorted(maps.Keys(a.Config.Storages))}
	if a.DB.Postgres() {
		m.Database = "postgres"
	}
	b := &backingUp{App: a, BackupOptions: o, w: w, m: m}
	for _, step := range []func(context.Context) error{b.files, b.rows, b.repositories, b.blobs} {
		if err := step(ctx); err != nil {
			return nil, fmt.Errorf("backup: %w", err)
		}
	}
	if err := w.Close(m); err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	return m, nil
}

// backingUp is a backup under way.
type backingUp struct {
	*App
	BackupOptions
	w    *backup.Writer
	m    *backup.Manifest
	held []repo.Held
}

// files adds what lies in the data directory itself.
func (b *backingUp) files(ctx context.Context) error {
	for _, name := range []string{filepath.Base(b.KeyFile()), "ssh", "ci_templates", "logs"} {
		if name == filepath.Base(b.KeyFile()) && b.WithoutKey {
			continue
		}
		err := filepath.WalkDir(filepath.Join(b.Config.DataDir, name), func(file string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) || err == nil && !e.Type().IsRegular() {
				return nil
			}
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(b.Config.DataDir, file)
			if err != nil {
				return err
			}
			return b.file(ctx, path.Join(backupData, filepath.ToSlash(rel)), file)
		})
		if err != nil {
			return err
		}
	}
	b.m.Key = !b.WithoutKey
	return nil
}

func (b *backingUp) file(ctx context.Context, name, from string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the log of a job that has ended: it is among the blobs now
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return b.w.Add(name, func(w io.Writer) error {
		_, err := io.Copy(w, f)
		return err
	})
}

// rows adds the database, and notes which repositories it names.
func (b *backingUp) rows(ctx context.Context) error {
	b.Tell("database")
	var err error
	b.m.Schema, err = b.DB.Dump(ctx, func(t db.DumpTable) error {
		rows := t.Rows
		t.Rows = func(yield func([]any, error) bool) {
			for row, err := range rows {
				if err == nil {
					b.note(t, row)
				}
				if !yield(row, err) {
					return
				}
			}
		}
		return b.w.Add(path.Join(backupRows, t.Name+".ndjson.gz"), func(w io.Writer) error {
			return backup.WriteRows(w, t.Columns, t.Last, t.Rows)
		})
	})
	return err
}

// note remembers the repository of a row.
func (b *backingUp) note(t db.DumpTable, row []any) {
	if t.Name != "projects" && t.Name != "annexes" {
		return
	}
	value := func(name string) any { return row[slices.Index(t.Columns, name)] }
	id, _ := value("id").(int64)
	h := repo.Held{ProjectID: id}
	if t.Name == "annexes" {
		h = repo.Held{AnnexID: id, Kind: repo.AnnexKind(fmt.Sprint(value("kind")))}
	}
	h.Storage = fmt.Sprint(value("storage"))
	b.held = append(b.held, h)
}

// repositoryIndex tells of a repository in a backup what its bundle does not.
type repositoryIndex struct {
	Storage string `json:"storage"`
	Path    string `json:"path"`
	Branch  string `json:"branch"`
	Refs    int    `json:"refs"`
}

// repositories adds each repository as a bundle, and beside it where it lies.
func (b *backingUp) repositories(ctx context.Context) error {
	for i, h := range b.held {
		index := repositoryIndex{Storage: h.Storage, Path: filepath.ToSlash(h.Path())}
		name := path.Join(backupGit, index.Storage, index.Path)
		var err error
		for range 3 { // it may move to another storage meanwhile
			err = b.w.Add(name+".bundle", func(w io.Writer) error {
				var err error
				index.Branch, index.Refs, err = b.Repos.Bundle(ctx, actor.System(), h, w)
				return err
			})
			if err == nil || errs.Is(err, errs.KindNotFound) || ctx.Err() != nil {
				break
			}
		}
		if errs.Is(err, errs.KindNotFound) {
			continue // nobody has written to it, or it was deleted just now
		}
		if err != nil {
			return err
		}
		err = b.w.Add(name+".json", func(w io.Writer) error { return json.NewEncoder(w).Encode(index) })
		if err != nil {
			return err
		}
		b.Tell("repositories: %d of %d", i+1, len(b.held))
	}
	return nil
}

// blobs adds all objects. What came after the database was read is in nobody's
// way.
func (b *backingUp) blobs(ctx context.Context) error {
	n := 0
	for info, err := range b.Blobs.List(ctx, "") {
		if err != nil {
			return err
		}
		object, err := b.Blobs.Get(ctx, info.Key)
		if errs.Is(err, errs.KindNotFound) {
			continue // it was deleted just now
		}
		if err != nil {
			return err
		}
		err = b.w.Add(path.Join(backupBlobs, "objects", info.Key), func(w io.Writer) error {
			_, err := io.Copy(w, object)
			return err
		})
		if err == nil && object.ContentType != "" {
			err = b.w.Add(path.Join(backupBlobs, "types", info.Key), func(w io.Writer) error {
				_, err := io.WriteString(w, object.ContentType)
				return err
			})
		}
		if err = errors.Join(err, object.Close()); err != nil {
			return err
		}
		n++
		b.Tell("blobs: %d", n)
	}
	return nil
}

// local tells whether a name can be that of a file below a directory.
func local(name string) bool { return filepath.IsLocal(name) && !strings.Contains(name, "\x00") }
