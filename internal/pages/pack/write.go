package pack

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"mime"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/andybalholm/brotli"

	"svc/internal/ci/archive"
	"svc/internal/errs"
)

// Limits are the limits of a site.
type Limits struct {
	Files int
	Bytes int64 // 0 means no limit
}

// Stats are the size of a site.
type Stats struct {
	Files int
	Bytes int64
}

const (
	// maxCopied is the maximum size of files with compressed copies, which are
	// compressed in memory.
	maxCopied = 8 << 20
	minCopied = 512
	// maxHops is the maximum length of a chain of links.
	maxHops = 8
	maxLink = 4096
)

// Write writes a pack of a directory of an archive; "." is the whole archive. It
// returns Unprocessable, with a message for users, if the site exceeds a limit or
// cannot be published: if it has a link that is broken or leads out of the site, or
// a name that is not a plain path. Files and directories whose name starts with a
// dot are skipped, except .well-known.
func Write(ctx context.Context, w io.Writer, from *archive.Reader, dir string, l Limits) (Stats, error) {
	files, err := collect(from, dir, l)
	if err != nil {
		return Stats{}, err
	}
	out := &writer{zip: zip.NewWriter(w), from: from, names: files, left: l.Bytes, limited: l.Bytes > 0}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := ctx.Err(); err != nil {
			return Stats{}, err
		}
		if err := out.add(name, files[name]); err != nil {
			return Stats{}, err
		}
	}
	if err := out.zip.Close(); err != nil {
		return Stats{}, fmt.Errorf("write pack: %w", err)
	}
	return out.stats, nil
}

// collect returns the files of the site by path, with links resolved.
func collect(from *archive.Reader, dir string, l Limits) (map[string]*archive.Entry, error) {
	prefix := ""
	if dir != "." {
		prefix = dir + "/"
	}
	all := map[string]*archive.Entry{}
	err := from.Walk(dir, func(f *archive.Entry) error {
		name := strings.TrimPrefix(f.Path, prefix)
		if hidden(name) {
			return nil
		}
		if !plainPath(name) {
			return errs.Unprocessable("The site has a file with a name that cannot be published: %q", cut(name))
		}
		if all[name] = f; len(all) > l.Files {
			return errs.Unprocessable("The site has more than %d files", l.Files)
		}
		return nil
	})
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case err != nil:
		return nil, errs.Unprocessable("The artifacts have no directory %q", cut(dir))
	case len(all) == 0:
		return nil, errs.Unprocessable("The directory %q of the artifacts has no files", cut(dir))
	}
	files := make(map[string]*archive.Entry, len(all))
	for name := range all {
		f, err := follow(from, all, name)
		if err != nil {
			return nil, err
		}
		files[name] = f
	}
	return files, nil
}

// plainPath reports whether a name is a path that all programs interpret in the same
// way.
func plainPath(name string) bool {
	return fs.ValidPath(name) && name != "." && len(name) <= 4096 && !strings.Contains(name, `\`) && !strings.ContainsFunc(name, unicode.IsControl)
}

// hidden reports whether a path has a segment that starts with a dot, except
// .well-known: such files are often secret.
func hidden(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".") && part != ".well-known" && part != "." && part != ".." {
			return true
		}
	}
	return false
}

// follow returns the file with a name, following links.
func follow(from *archive.Reader, all map[string]*archive.Entry, name string) (*archive.Entry, error) {
	at := name
	for range maxHops {
		f := all[at]
		if f == nil {
			break
		}
		switch kind := f.Mode().Type(); {
		case kind == 0:
			return f, nil
		case kind != fs.ModeSymlink:
			return nil, errs.Unprocessable("%q is neither a file nor a link", cut(name))
		}
		to, err := linkTarget(from, f)
		if err != nil {
			return nil, err
		}
		if path.IsAbs(to) || strings.Contains(to, `\`) {
			break
		}
		at = path.Join(path.Dir(at), to)
	}
	return nil, errs.Unprocessable("The link %q does not point to a file of the site", cut(name))
}

func linkTarget(from *archive.Reader, f *archive.Entry) (string, error) {
	r, err := from.Open(f)
	if err != nil {
		return "", broken(f, err)
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, maxLink))
	if err != nil {
		return "", broken(f, err)
	}
	return string(text), nil
}

func broken(f *archive.Entry, err error) error {
	return errs.Unprocessable("The file %q of the artifacts cannot be read", cut(f.Path)).Because(err)
}

// cut limits the length of a name in a message.
func cut(name string) string {
	if len(name) > 200 {
		name = name[:200] + "…"
	}
	return strings.ToValidUTF8(name, "?")
}

type writer struct {
	zip     *zip.Writer
	from    *archive.Reader
	names   map[string]*archive.Entry
	stats   Stats
	limited bool
	left    int64
}

// add writes a file and its compressed copies.
func (w *writer) add(name string, f *archive.Entry) error {
	size := f.Size
	if size < 0 || w.limited && size > w.left {
		return errs.Unprocessable("The site is over the limit of its size")
	}
	in, err := w.from.Open(f)
	if err != nil {
		return broken(f, err)
	}
	defer in.Close()
	head := header(plainDir, name)
	out, err := w.zip.CreateHeader(head)
	if err != nil {
		return fmt.Errorf("write pack: %w", err)
	}
	sum := sha256.New()
	to := io.MultiWriter(out, sum)
	var kept bytes.Buffer
	copied := size >= minCopied && size <= maxCopied && compressible(name)
	if copied {
		to = io.MultiWriter(out, sum, &kept)
	}
	n, err := io.Copy(to, io.LimitReader(in, size+1))
	if err != nil {
		return broken(f, err)
	}
	if n != size { // the size in the archive may be wrong
		return errs.Unprocessable("The size of the file %q differs from the size in the archive", cut(f.Path))
	}
	head.Comment = hex.EncodeToString(sum.Sum(nil)[:16])
	w.left -= n
	w.stats.Files++
	w.stats.Bytes += n
	if copied {
		return w.copies(name, kept.Bytes())
	}
	return nil
}

func header(dir, name string) *zip.FileHeader {
	return &zip.FileHeader{Name: dir + name, Method: zip.Store, Modified: time.Unix(0, 0).UTC()}
}

// copies writes compressed copies that are smaller by at least a tenth.
func (w *writer) copies(name string, content []byte) error {
	for _, c := range []struct {
		dir, suffix string
		make        func(io.Writer) io.WriteCloser
	}{
		{brotliDir, ".br", func(to io.Writer) io.WriteCloser { return brotli.NewWriterLevel(to, 5) }},
		{gzipDir, ".gz", func(to io.Writer) io.WriteCloser { return gzip.NewWriter(to) }},
	} {
		if w.names[name+c.suffix] != nil {
			continue // the site contains a compressed copy
		}
		var small bytes.Buffer
		z := c.make(&small)
		if _, err := z.Write(content); err != nil {
			return fmt.Errorf("write pack: %w", err)
		}
		if err := z.Close(); err != nil {
			return fmt.Errorf("write pack: %w", err)
		}
		if small.Len() > len(content)/10*9 {
			continue
		}
		out, err := w.zip.CreateHeader(header(c.dir, name))
		if err != nil {
			return fmt.Errorf("write pack: %w", err)
		}
		if _, err := out.Write(small.Bytes()); err != nil {
			return fmt.Errorf("write pack: %w", err)
		}
	}
	return nil
}

// compressible reports whether a file has a content type that compresses well, by
// its name.
func compressible(name string) bool {
	kind, _, _ := strings.Cut(Type(name), ";")
	switch kind {
	case "application/json", "application/xml", "application/wasm", "application/javascript", "application/manifest+json",
		"application/rss+xml", "application/atom+xml", "application/xhtml+xml", "image/svg+xml", "application/vnd.ms-fontobject",
		"font/ttf", "font/otf", "image/bmp", "image/x-icon", "application/ld+json", "application/geo+json":
		return true
	}
	return strings.HasPrefix(kind, "text/")
}

// types are content types that are missing or different in the tables of operating
// systems. They make sites independent of the server.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".htm": "text/html; charset=utf-8", ".xhtml": "application/xhtml+xml",
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".mjs": "text/javascript; charset=utf-8",
	".json": "application/json", ".map": "application/json", ".webmanifest": "application/manifest+json",
	".txt": "text/plain; charset=utf-8", ".text": "text/plain; charset=utf-8", ".log": "text/plain; charset=utf-8",
	".md": "text/markdown; charset=utf-8", ".csv": "text/csv; charset=utf-8", ".xml": "text/xml; charset=utf-8",
	".rss": "application/rss+xml", ".atom": "application/atom+xml", ".svg": "image/svg+xml", ".png": "image/png",
	".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".avif": "image/avif",
	".ico": "image/x-icon", ".bmp": "image/bmp", ".woff": "font/woff", ".woff2": "font/woff2", ".ttf": "font/ttf", ".otf": "font/otf",
	".eot": "application/vnd.ms-fontobject", ".wasm": "application/wasm", ".pdf": "application/pdf", ".zip": "application/zip",
	".gz": "application/gzip", ".br": "application/octet-stream", ".mp4": "video/mp4", ".webm": "video/webm", ".mp3": "audio/mpeg",
	".ogg": "audio/ogg", ".wav": "audio/wav", ".geojson": "application/geo+json", ".jsonld": "application/ld+json",
}

// Type returns the content type of a file by its name, or "" if it is unknown.
func Type(name string) string {
	ext := strings.ToLower(path.Ext(name))
	if kind, known := types[ext]; known {
		return kind
	}
	return mime.TypeByExtension(ext)
}
