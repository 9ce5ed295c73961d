package runner

import (
	"archive/zip"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// pack writes files of a working tree into one file, in a format of the
// protocol: zip, gzip or raw.
func pack(ctx context.Context, dir string, files []string, format, to string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	from := tree{ctx, root}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	switch format {
	case "", "zip":
		err = packZip(files, out, from)
	case "gzip":
		err = packGzip(files, out, from)
	case "raw":
		err = packRaw(files, out, from)
	default:
		err = fmt.Errorf("%w: the format %q is not known", errRefused, format)
	}
	return errors.Join(err, out.Close())
}

// tree is a working tree. It gives no access to files outside of it.
type tree struct {
	ctx  context.Context
	root *os.Root
}

func packZip(files []string, out io.Writer, from tree) error {
	z := zip.NewWriter(out)
	for _, name := range files {
		if err := from.addZip(z, name); err != nil {
			return fmt.Errorf("pack %s: %w", name, err)
		}
	}
	return z.Close()
}

func (t tree) addZip(z *zip.Writer, name string) error {
	info, err := t.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) { // deleted since it was found
		return nil
	}
	if err != nil {
		return err
	}
	head, err := zip.FileInfoHeader(info)
	if err != nil {
		return err
	}
	head.Name = name
	switch kind := info.Mode().Type(); kind {
	case fs.ModeDir:
		head.Name += "/"
		_, err := z.CreateHeader(head)
		return err
	case fs.ModeSymlink:
		to, err := t.root.Readlink(name)
		if err != nil {
			return err
		}
		w, err := z.CreateHeader(head)
		if err == nil {
			_, err = io.WriteString(w, to)
		}
		return err
	}
	head.Method = zip.Deflate
	w, err := z.CreateHeader(head)
	if err != nil {
		return err
	}
	return t.copy(name, w)
}

// copy writes the content of a file.
func (t tree) copy(name string, w io.Writer) error {
	f, err := t.root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, patient{t.ctx, f})
	return err
}

// patient is a reader that fails when its context ends, because reading a large file
// takes long.
type patient struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (p patient) Read(b []byte) (int, error) {
	if err := context.Cause(p.ctx); err != nil {
		return 0, err
	}
	return p.r.Read(b)
}

// packGzip writes each file as one gzip member with its name.
func packGzip(files []string, out io.Writer, from tree) error {
	for _, name := range files {
		if info, err := from.root.Lstat(name); err != nil || !info.Mode().IsRegular() {
			continue
		}
		z := gzip.NewWriter(out)
		z.Name = path.Base(name)
		if strings.ContainsFunc(z.Name, func(r rune) bool { return r == 0 || r > 0xff }) {
			z.Name = "" // gzip supports only Latin-1 names
		}
		if err := errors.Join(from.copy(name, z), z.Close()); err != nil {
			return fmt.Errorf("pack %s: %w", name, err)
		}
	}
	return nil
}

func packRaw(files []string, out io.Writer, from tree) error {
	if len(files) != 1 {
		return fmt.Errorf("%w: a report of this type is one file, not %d", errRefused, len(files))
	}
	if info, err := from.root.Lstat(files[0]); err != nil || !info.Mode().IsRegular() {
		return fmt.Errorf("%w: %s is not a file", errRefused, files[0])
	}
	return from.copy(files[0], out)
}

// unpack extracts an archive into a directory and returns the number of files. No
// entry can write outside of the directory, neither by its name nor through a link.
func unpack(ctx context.Context, archive, dir string) (int, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	z, err := zip.OpenReader(archive)
	if err != nil {
		return 0, err
	}
	defer z.Close()
	to := tree{ctx, root}
	var dirs []*zip.File
	for _, f := range z.File {
		if !filepath.IsLocal(filepath.FromSlash(f.Name)) || strings.Contains(f.Name, `\`) {
			return 0, fmt.Errorf("unpack: the entry %q leads out of the working tree", f.Name)
		}
		if err := to.extract(f); err != nil {
			return 0, fmt.Errorf("unpack %s: %w", f.Name, err)
		}
		if f.Mode().IsDir() {
			dirs = append(dirs, f)
		}
	}
	for i := len(dirs) - 1; i >= 0; i-- { // last, because they may be read-only
		name := strings.TrimSuffix(dirs[i].Name, "/")
		if err := root.Chmod(name, dirs[i].Mode().Perm()|0o700); err != nil {
			return 0, fmt.Errorf("unpack %s: %w", name, err)
		}
	}
	return len(z.File), nil
}

func (t tree) extract(f *zip.File) error {
	root := t.root
	name := strings.TrimSuffix(f.Name, "/")
	if f.Mode().IsDir() {
		if info, err := root.Lstat(name); err == nil && !info.IsDir() {
			if err := root.Remove(name); err != nil {
				return err
			}
		}
		return root.MkdirAll(name, 0o700)
	}
	if parent := path.Dir(name); parent != "." {
		if err := root.MkdirAll(parent, 0o755); err != nil {
			return err
		}
	}
	if _, err := root.Lstat(name); err == nil {
		if err := root.RemoveAll(name); err != nil { // never write through an existing link
			return err
		}
	}
	in, err := f.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	if f.Mode()&fs.ModeSymlink != 0 {
		to, err := io.ReadAll(io.LimitReader(in, 4096))
		if err != nil {
			return err
		}
		return root.Symlink(string(to), name)
	}
	if !f.Mode().IsRegular() {
		return errors.New("is neither a file nor a directory nor a link")
	}
	out, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, f.Mode().Perm()|0o200)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, patient{t.ctx, in})
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	if err := root.Chmod(name, f.Mode().Perm()); err != nil {
		return err
	}
	return root.Chtimes(name, f.Modified, f.Modified)
}
