package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"svc/internal/actor"
	"svc/internal/backup"
	"svc/internal/config"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/repo"
)

// The directories of a backup.
const (
	backupData  = "data"
	backupRows  = "database"
	backupGit   = "repositories"
	backupBlobs = "blobs"
)

// BackupParts are the directories that a backup can have.
func BackupParts() []string { return []string{backupBlobs, backupRows, backupData, backupGit} }

// The metadata of backup entries.
const (
	metaType   = "type"   // content type of an object
	metaBranch = "branch" // default branch of a repository
	metaRows   = "rows"   // number of rows of a table
	metaSize   = "size"   // uncompressed size of a table
)

// dataFiles returns the files and directories of the data directory that a backup
// includes as they are. The others are caches (pages), are useless elsewhere (tmp,
// runner, locks), or are backed up in another way (svc.db, blobs, repositories and
// logs).
func dataFiles() []string {
	return []string{"secret.key", "ssh", "ci_templates", "runner/token", "runner/system_id"}
}

// logFiles is the directory of the logs of running jobs.
const logFiles = "logs"

// BackupOptions are the options of a backup.
type BackupOptions struct {
	// Out is where the backup is written to. Large parts of it are written to Temp
	// first, one at a time.
	Out  io.Writer
	Temp string
	// WithoutKey leaves out the instance key, for operators who store it elsewhere.
	WithoutKey bool
	// Progress is called with messages about the current step.
	Progress func(format string, args ...any)
}

// Installed returns an error if there is no instance. Commands that only read call
// it first, because opening the database would create an instance.
func Installed(cfg config.Config) error {
	need := []string{"secret.key"}
	if cfg.DatabaseURL == "" {
		need = append(need, "svc.db")
	}
	for _, name := range need {
		if _, err := os.Stat(filepath.Join(cfg.DataDir, name)); err != nil {
			return fmt.Errorf("the data directory has no instance (is --config or --data-dir missing?): %w", err)
		}
	}
	return nil
}

// Backup writes all data of the instance, also while servers are running. The
// database is a consistent snapshot, and everything that it refers to is in the
// backup: objects are written before their rows, objects that were created since the
// first listing are added after the snapshot, and commits stay in repositories.
// Repositories are as the snapshot knows them, without later pushes. For
// a repository that was deleted during the backup, the backup contains an empty one,
// and the manifest names it.
func (a *App) Backup(ctx context.Context, o BackupOptions) (*backup.Manifest, error) {
	m, err := a.backup(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	return m, nil
}

func (a *App) backup(ctx context.Context, o BackupOptions) (*backup.Manifest, error) {
	have, know, err := a.DB.Version(ctx)
	if err == nil && have > know {
		err = fmt.Errorf("the database has schema version %d, this program knows %d: run a newer release", have, know)
	}
	if err == nil {
		err = a.checkKey(ctx)
	}
	if err != nil {
		return nil, err
	}
	w, err := backup.NewWriter(until{ctx, o.Out}, o.Temp)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	m := &backup.Manifest{
		Program: config.Version(), Database: "sqlite", Key: !o.WithoutKey, Storages: slices.Sorted(maps.Keys(a.Config.Storages)),
	}
	if a.DB.Postgres() {
		m.Database = "postgres"
	}
	b := &backingUp{App: a, BackupOptions: o, w: w, m: m}
	defer b.close()
	// The key is added after the database, because a new key is created before values
	// are sealed with it.
	for _, step := range []func(context.Context) error{b.blobs, b.database, b.files, b.newBlobs, b.repositories} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return m, w.Finish(m)
}

// until is a writer that fails after ctx has ended.
type until struct {
	ctx context.Context
	out io.Writer
}

// Write implements io.Writer.
func (u until) Write(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.out.Write(p)
}

// checkKey returns an error if the instance key is not that of the database. A
// database that was never served has no key yet.
func (a *App) checkKey(ctx context.Context) error {
	owner, err := keyOwner(ctx, a.DB)
	if errors.Is(err, db.ErrNoRows) {
		return nil
	}
	if err == nil && !slices.Contains(a.Keys.IDs(), owner) {
		err = fmt.Errorf("%s is not the key of this database, which was created with key %s", a.KeyFile(), owner)
	}
	return err
}

// backingUp is a backup in progress.
type backingUp struct {
	*App
	BackupOptions
	w    *backup.Writer
	m    *backup.Manifest
	held []repo.Held
	// recorded are the pushes that the snapshot has recorded; nil if its schema is older
	// than their table.
	recorded repo.Recorded
	seen     *os.File // list of the objects that were added first
}

func (b *backingUp) close() {
	if b.seen != nil {
		_ = b.seen.Close() // the file is deleted with the directory
	}
}

// database adds the tables and records which repositories they contain. It adds the
// logs of running jobs when the snapshot is taken, so that both have nearly the same
// state.
func (b *backingUp) database(ctx context.Context) error {
	logs := &liveLogs{dir: filepath.Join(b.Config.DataDir, logFiles)}
	defer logs.close()
	if err := logs.open(); err != nil {
		return err
	}
	version, err := b.DB.Dump(ctx, func() error {
		b.m.CreatedAt = b.now().UTC()
		return b.logs(logs)
	}, func(t db.DumpTable) error {
		b.Progress("database: %s", t.Name)
		return b.w.AddFrom(path.Join(backupRows, t.Name+".ndjson.gz"), func(w io.Writer) (backup.Meta, error) {
			n, size, err := backup.WriteRows(w, t.Columns, t.Last, b.noting(t))
			return backup.Meta{metaRows: strconv.FormatInt(n, 10), metaSize: strconv.FormatInt(size, 10)}, err
		})
	})
	b.m.Schema, b.m.PendingMigrations = version.Newest, version.Pending
	return err
}

// noting returns the rows of a table and records the repositories or recorded pushes
// in them.
func (b *backingUp) noting(t db.DumpTable) func(func([]any, error) bool) {
	switch t.Name {
	case "projects", "annexes":
	case repo.RecordedTable:
		b.recorded = repo.Recorded{}
	default:
		return t.Rows
	}
	return func(yield func([]any, error) bool) {
		for row, err := range t.Rows {
			if err == nil {
				b.note(t, row)
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

func (b *backingUp) note(t db.DumpTable, row []any) {
	value := func(name string) any {
		if i := slices.Index(t.Columns, name); i >= 0 {
			return row[i]
		}
		return nil
	}
	id, _ := value("id").(int64)
	if t.Name == repo.RecordedTable {
		b.recorded[id] = true
		return
	}
	h := repo.Held{ProjectID: id}
	if t.Name == "annexes" {
		kind, _ := value("kind").(string)
		size, _ := value("size").(int64)
		h = repo.Held{AuxRepoID: id, Kind: repo.AuxRepoKind(kind), Filled: size > 0}
	} else {
		branch, _ := value("default_branch").(string)
		h.Filled, h.Branch = branch != "", branch
	}
	h.Storage, _ = value("storage").(string)
	b.held = append(b.held, h)
}

// repositories adds each repository as a bundle.
func (b *backingUp) repositories(ctx context.Context) error {
	for i, h := range b.held {
		b.Progress("repositories: %d of %d", i, len(b.held))
		if err := b.repository(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

// bundleTries is how often a repository is tried, because it may be moved to another
// storage during an attempt.
const bundleTries = 3

func (b *backingUp) repository(ctx context.Context, h repo.Held) (err error) {
	name := path.Join(backupGit, h.Storage, filepath.ToSlash(h.Path())) + ".bundle"
	for range bundleTries {
		err = b.w.AddFrom(name, func(w io.Writer) (backup.Meta, error) {
			branch, err := b.Repos.Bundle(ctx, actor.System(), h, b.recorded, w)
			return backup.Meta{metaBranch: branch}, err
		})
		if err == nil || ctx.Err() != nil || !h.Filled && errs.Is(err, errs.KindNotFound) {
			break
		}
	}
	if !errs.Is(err, errs.KindNotFound) || ctx.Err() != nil {
		return err
	}
	if !h.Filled {
		return nil // it has no pushes yet
	}
	b.m.Lacks(fmt.Sprintf("repository %s on storage %s", filepath.ToSlash(h.Path()), h.Storage))
	return b.w.AddFrom(name, func(w io.Writer) (backup.Meta, error) {
		return backup.Meta{metaBranch: repo.UsualBranch}, git.WriteEmptyBundle(w)
	})
}
