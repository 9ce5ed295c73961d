package blob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"svc/internal/errs"
)

// disk is a Store that stores each object in a file, at its key below objects/.
// Files are written below tmp/, synced, and then renamed.
//
// All files are accessed through an os.Root, so neither a key nor a symbolic link
// gives access to other files.
type disk struct {
	root    *os.Root
	session session
	// create creates a temporary file. It returns the name also with an error.
	create func() (*os.File, string, error)

	// dirs is locked while directories are created and synced, and while they are
	// removed. So a directory that a Put finds is durable.
	dirs sync.Mutex
}

const objects = "objects"

func openDisk(dir string) (Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open blob directory: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open blob directory: %w", err)
	}
	d := &disk{root: root}
	err = syncDir(os.Open(filepath.Dir(dir)))
	if err == nil {
		err = d.makeDir(objects)
	}
	if err == nil {
		d.session, err = openSession(root)
		d.create = func() (*os.File, string, error) { return d.session.create(root) }
	}
	if err != nil {
		root.Close()
		return nil, fmt.Errorf("open blob directory %s: %w", dir, err)
	}
	return d, nil
}

func (d *disk) Put(ctx context.Context, key string, r io.Reader, o Options) (int64, error) {
	if err := CheckKey(key); err != nil {
		return 0, err
	}
	o, err := o.checked()
	if err != nil {
		return 0, err
	}
	temp, size, err := d.write(endsWith(ctx, r), o)
	if err == nil {
		err = ctx.Err() // last check before the object is published
	}
	if err == nil {
		err = d.publish(temp, path.Join(objects, key))
	}
	if err != nil {
		d.root.Remove(temp)
		return 0, fmt.Errorf("put object %s: %w", key, err)
	}
	return size, nil
}

// write writes an object to a temporary file and syncs it.
func (d *disk) write(r io.Reader, o Options) (temp string, size int64, err error) {
	f, temp, err := d.create()
	if err != nil {
		return temp, 0, err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	size, err = io.CopyBuffer(struct{ io.Writer }{f}, r, make([]byte, 128<<10))
	if err != nil {
		return temp, size, err
	}
	if err := o.checkSize(size); err != nil {
		return temp, size, err
	}
	if _, err := f.Write(trailer(size, o.ContentType)); err != nil {
		return temp, size, err
	}
	return temp, size, f.Sync()
}

// publish renames a temporary file to its final name.
func (d *disk) publish(temp, name string) error {
	const tries = 100
	for try := 1; ; try++ {
		if err := d.makeDir(path.Dir(name)); err != nil {
			return err
		}
		err := d.root.Rename(temp, name)
		switch {
		case err == nil:
			return d.sync(path.Dir(name))
		case try == tries:
			return err
		case errors.Is(err, fs.ErrNotExist):
			// A concurrent Delete removed the empty directory.
		case errors.Is(err, syscall.EISDIR), errors.Is(err, fs.ErrExist):
			// A directory has this name. It is removed if it is empty.
			if rerr := d.root.Remove(name); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
				return errs.Conflict("an object key cannot be a directory of another").Because(err)
			}
		default:
			return err
		}
	}
}

// makeDir creates a directory and its parents, and syncs them.
func (d *disk) makeDir(name string) error {
	d.dirs.Lock()
	defer d.dirs.Unlock()
	return d.makeDirLocked(name)
}

func (d *disk) makeDirLocked(name string) error {
	err := d.root.Mkdir(name, 0o700)
	switch {
	case err == nil:
		return d.sync(path.Dir(name))
	case errors.Is(err, fs.ErrExist):
		info, err := d.root.Stat(name)
		if err == nil && !info.IsDir() {
			err = syscall.ENOTDIR
		}
		return conflict(err)
	case errors.Is(err, fs.ErrNotExist) && name != ".":
		if err := d.makeDirLocked(path.Dir(name)); err != nil {
			return err
		}
		return d.makeDirLocked(name)
	default:
		return conflict(err)
	}
}

// conflict converts the error of a file in the place of a directory to Conflict.
func conflict(err error) error {
	if errors.Is(err, syscall.ENOTDIR) {
		return errs.Conflict("an object key cannot be a directory of another").Because(err)
	}
	return err
}

// sync syncs the entries of a directory.
func (d *disk) sync(name string) error {
	err := syncDir(d.root.Open(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed in the meantime
	}
	return err
}

func syncDir(dir *os.File, err error) error {
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

func (d *disk) Get(_ context.Context, key string) (*Object, error) {
	f, info, err := d.open(key)
	if err != nil {
		return nil, err
	}
	return &Object{info, section{io.NewSectionReader(f, 0, info.Size), f}}, nil
}

func (d *disk) GetRange(_ context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if offset < 0 {
		return nil, errs.Invalid("offset is negative")
	}
	f, info, err := d.open(key)
	if err != nil {
		return nil, err
	}
	offset = min(offset, info.Size)
	if rest := info.Size - offset; length < 0 || length > rest {
		length = rest
	}
	return section{io.NewSectionReader(f, offset, length), f}, nil
}

// section is a part of an open file. Its Close closes the file. A replaced or
// deleted file can be read until then.
type section struct {
	*io.SectionReader
	io.Closer
}

func (d *disk) Stat(_ context.Context, key string) (Info, error) {
	f, info, err := d.open(key)
	if err != nil {
		return Info{}, err
	}
	return info, f.Close()
}

func (d *disk) open(key string) (*os.File, Info, error) {
	if err := CheckKey(key); err != nil {
		return nil, Info{}, err
	}
	f, err := d.root.Open(path.Join(objects, key))
	if err != nil {
		return nil, Info{}, fmt.Errorf("open object %s: %w", key, absent(err))
	}
	info, err := describe(f, key)
	if err != nil {
		f.Close()
		return nil, Info{}, fmt.Errorf("open object %s: %w", key, err)
	}
	return f, info, nil
}

// absent converts the error of a missing object to NotFound.
func absent(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return errs.NotFound("").Because(err)
	}
	return err
}

func describe(f *os.File, key string) (Info, error) {
	stat, err := f.Stat()
	if err != nil {
		return Info{}, err
	}
	if stat.IsDir() {
		return Info{}, errs.NotFound("")
	}
	end := make([]byte, trailerLen)
	if _, err := f.ReadAt(end, max(0, stat.Size()-trailerLen)); err != nil && err != io.EOF {
		return Info{}, err
	}
	size, contentType, ok := parseTrailer(end)
	if !ok || size != stat.Size()-trailerLen {
		return Info{}, errors.New("the file is damaged, or was not put there by this program")
	}
	return Info{Key: key, Size: size, ModTime: stat.ModTime().UTC(), ContentType: contentType}, nil
}

func (d *disk) Delete(_ context.Context, key string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	name := path.Join(objects, key)
	if stat, err := d.root.Lstat(name); err == nil && stat.IsDir() {
		return nil
	}
	err := d.root.Remove(name)
	if errs.Is(absent(err), errs.KindNotFound) {
		return nil
	}
	dir := path.Dir(name)
	if err == nil {
		err = d.sync(dir)
	}
	if err != nil {
		return fmt.Errorf("delete object %s: %w", key, err)
	}
	// Remove empty parent directories. Remove fails for other directories.
	d.dirs.Lock()
	defer d.dirs.Unlock()
	for dir != objects && d.root.Remove(dir) == nil {
		dir = path.Dir(dir)
	}
	return nil
}

func (d *disk) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := checkPrefix(prefix); err != nil {
			yield(Info{}, err)
			return
		}
		dir, start := splitPrefix(prefix)
		d.walk(ctx, dir, start, yield)
	}
}

// walk lists the objects in a directory and its subdirectories. It returns false if
// the listing must end.
func (d *disk) walk(ctx context.Context, dir, start string, yield func(Info, error) bool) bool {
	entries, err := d.readDir(path.Join(objects, dir))
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		if errs.Is(absent(err), errs.KindNotFound) {
			return true
		}
		yield(Info{}, fmt.Errorf("list objects: %w", err))
		return false
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), start) {
			continue
		}
		key := path.Join(dir, e.Name())
		if e.IsDir() {
			if !d.walk(ctx, key, "", yield) {
				return false
			}
			continue
		}
		stat, err := e.Info()
		if err != nil || !stat.Mode().IsRegular() || stat.Size() < trailerLen || CheckKey(key) != nil {
			continue // deleted in the meantime, or not an object
		}
		if !yield(Info{Key: key, Size: stat.Size() - trailerLen, ModTime: stat.ModTime().UTC()}, nil) {
			return false
		}
	}
	return true
}

// readDir returns the entries of a directory in the order of their keys: the name of
// a directory is compared with a trailing "/".
func (d *disk) readDir(name string) ([]fs.DirEntry, error) {
	dir, err := d.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	sortName := func(e fs.DirEntry) string {
		if e.IsDir() {
			return e.Name() + "/"
		}
		return e.Name()
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(sortName(a), sortName(b)) })
	return entries, nil
}

func (d *disk) URL(_ context.Context, key string, ttl time.Duration) (string, error) {
	if err := CheckKey(key); err != nil {
		return "", err
	}
	if err := checkTTL(ttl); err != nil {
		return "", err
	}
	return "", errs.NotAllowed("objects on disk have no URL")
}

func (d *disk) UploadURL(_ context.Context, key string, _ int64, ttl time.Duration) (string, map[string]string, error) {
	if err := CheckKey(key); err != nil {
		return "", nil, err
	}
	if err := checkTTL(ttl); err != nil {
		return "", nil, err
	}
	return "", nil, errs.NotAllowed("objects on disk have no URL")
}

// Copy implements Store. It detects a replaced object by its size and modification
// time.
func (d *disk) Copy(ctx context.Context, from Info, to string) error {
	if err := CheckKey(to); err != nil {
		return err
	}
	f, info, err := d.open(from.Key)
	if err != nil {
		return err
	}
	defer f.Close()
	if info.Size != from.Size || !info.ModTime.Equal(from.ModTime) {
		return errs.Precondition("the object was replaced")
	}
	_, err = d.Put(ctx, to, io.NewSectionReader(f, 0, info.Size), Options{ContentType: info.ContentType, Size: info.Size})
	return err
}

// Ping implements Store. It writes a file, because that fails if the disk is full or
// read-only.
func (d *disk) Ping(context.Context) error {
	f, temp, err := d.create()
	if err == nil {
		_, err = f.Write(trailer(0, defaultType))
		err = cmp.Or(err, f.Close())
		err = cmp.Or(err, d.root.Remove(temp))
	}
	if err != nil {
		return errs.Unavailable("the object storage is not writable").Because(err)
	}
	return nil
}

func (d *disk) Close() error {
	return errors.Join(d.session.close(d.root), d.root.Close())
}
