package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"svc/internal/backup"
	"svc/internal/blob"
	"svc/internal/codesearch"
	"svc/internal/errs"
	"svc/internal/imageproxy"
	"svc/internal/repo/bucket"
)

// files adds the files of the data directory. The content of links is added,
// because their targets may differ on another machine.
func (b *backingUp) files(ctx context.Context) error {
	for _, name := range dataFiles() {
		if name == filepath.Base(b.KeyFile()) && b.WithoutKey {
			continue
		}
		root, err := filepath.EvalSymlinks(filepath.Join(b.Config.DataDir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		err = filepath.WalkDir(root, func(file string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) || err == nil && e.IsDir() {
				return ctx.Err()
			}
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root, file)
			if err != nil {
				return err
			}
			return b.file(path.Join(name, filepath.ToSlash(rel)), file)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *backingUp) file(name, from string) error {
	info, err := os.Stat(from)
	if err == nil && !info.Mode().IsRegular() { // a link to a directory
		b.m.Lacks("file " + name)
		return nil
	}
	var f *os.File
	if err == nil {
		f, err = os.Open(from)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed concurrently, or a broken link
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return b.w.AddFrom(path.Join(backupData, name), func(w io.Writer) (backup.Meta, error) {
		_, err := io.Copy(w, f)
		return nil, err
	})
}

// liveLogs are the files with the logs of running jobs. They are opened before the
// snapshot of the database and read after it, so that all output before the snapshot
// is included, even if the job has ended and its file was deleted.
type liveLogs struct {
	dir   string
	files []*os.File
}

// open opens all files that are not open yet.
func (l *liveLogs) open() error {
	list, err := os.ReadDir(l.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // they are in the database
	}
	if err != nil {
		return err
	}
	for _, e := range list {
		name := filepath.Join(l.dir, e.Name())
		if !e.Type().IsRegular() || slices.ContainsFunc(l.files, func(f *os.File) bool { return f.Name() == name }) {
			continue
		}
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		l.files = append(l.files, f)
	}
	return nil
}

func (l *liveLogs) close() {
	for _, f := range l.files {
		_ = f.Close() // opened for reading only
	}
}

// logs adds the logs of running jobs.
func (b *backingUp) logs(l *liveLogs) error {
	if err := l.open(); err != nil { // files that were created since
		return err
	}
	for _, f := range l.files {
		info, err := f.Stat()
		if err == nil {
			err = b.w.Add(path.Join(backupData, logFiles, filepath.Base(f.Name())), info.Size(), nil, f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sight returns the line that is recorded about an object. Keys do not contain tabs.
func sight(info blob.Info) string {
	return fmt.Sprintf("%s\t%d\t%d", info.Key, info.Size, info.ModTime.UnixNano())
}

// blobs adds all objects and records them in a file, sorted by key like the listing.
func (b *backingUp) blobs(ctx context.Context) error {
	file, err := backup.TempFile(b.Temp)
	if err != nil {
		return err
	}
	b.seen = file
	out := bufio.NewWriter(file)
	for info, err := range b.Blobs.List(ctx, "") {
		if err == nil {
			_, err = fmt.Fprintln(out, sight(info))
		}
		if err == nil {
			err = b.blob(ctx, info)
		}
		if err != nil {
			return err
		}
	}
	return out.Flush()
}

// newBlobs adds the objects that were created or changed since blobs listed them,
// because the snapshot of the database may refer to them. It cannot refer to objects
// that are created later.
func (b *backingUp) newBlobs(ctx context.Context) error {
	if _, err := b.seen.Seek(0, io.SeekStart); err != nil {
		return err
	}
	before := bufio.NewScanner(b.seen) // sorted by key like the listing
	more := before.Scan()
	for info, err := range b.Blobs.List(ctx, "") {
		if err != nil {
			return err
		}
		for more && keyOf(before.Text()) < info.Key { // the object was deleted
			more = before.Scan()
		}
		if more && before.Text() == sight(info) {
			continue
		}
		if err := b.blob(ctx, info); err != nil {
			return err
		}
	}
	return before.Err()
}

func keyOf(sight string) string {
	key, _, _ := strings.Cut(sight, "\t")
	return key
}

// blobTries is how often an object of a remote store is tried.
const blobTries = 3

func (b *backingUp) blob(ctx context.Context, info blob.Info) (err error) {
	if strings.HasPrefix(info.Key, imageproxy.Prefix) || strings.HasPrefix(info.Key, bucket.Prefix) || strings.HasPrefix(info.Key, codesearch.Prefix) {
		return nil // repositories are backed up as bundles, the others are created again when needed
	}
	b.Progress("blobs: %s", ByteSize(b.w.Bytes()))
	if b.Config.BlobURL == "" {
		return b.localBlob(ctx, info)
	}
	for range blobTries {
		err = b.remoteBlob(ctx, info)
		if err == nil || ctx.Err() != nil {
			break
		}
		if errs.Is(err, errs.KindNotFound) {
			return nil // deleted concurrently
		}
	}
	return err
}

func (b *backingUp) localBlob(ctx context.Context, info blob.Info) error {
	object, err := b.Blobs.Get(ctx, info.Key)
	if errs.Is(err, errs.KindNotFound) {
		return nil // deleted concurrently
	}
	if err != nil {
		return err
	}
	defer object.Close()
	return b.w.Add(path.Join(backupBlobs, info.Key), object.Size, typeOf(object), object)
}

// remoteBlob adds an object from a store whose connection may fail during the
// transfer. An incomplete entry is discarded.
func (b *backingUp) remoteBlob(ctx context.Context, info blob.Info) error {
	return b.w.AddFrom(path.Join(backupBlobs, info.Key), func(w io.Writer) (backup.Meta, error) {
		object, err := b.Blobs.Get(ctx, info.Key)
		if err != nil {
			return nil, err
		}
		defer object.Close()
		n, err := io.Copy(w, object)
		if err == nil && n != object.Size {
			err = io.ErrUnexpectedEOF
		}
		return typeOf(object), err
	})
}

func typeOf(o *blob.Object) backup.Meta {
	if o.ContentType == "" {
		return nil
	}
	return backup.Meta{metaType: o.ContentType}
}

// ByteSize formats a size for messages to users.
func ByteSize(n int64) string {
	const unit = 1 << 10
	if n < unit {
		return fmt.Sprintf("%d bytes", n)
	}
	size, name := float64(n), ""
	for _, name = range []string{"KiB", "MiB", "GiB", "TiB"} {
		if size /= unit; size < unit {
			break
		}
	}
	return fmt.Sprintf("%.1f %s", size, name)
}
