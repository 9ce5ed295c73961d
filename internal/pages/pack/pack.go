// Package pack stores the files of a site in one archive that can be served
// directly: a zip archive with uncompressed entries, and Brotli and gzip copies of
// files that compress well.
//
// A file is at site/<path>, its copies are at br/<path> and gz/<path>. The
// comment of an entry is a digest of the file, which becomes its ETag.
package pack

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// The directories of a pack.
const (
	plainDir  = "site/"
	brotliDir = "br/"
	gzipDir   = "gz/"
)

// Pack is a site that is open for reading. It is safe for concurrent use.
type Pack struct {
	in    io.ReaderAt
	files map[string]*File
	dirs  map[string]bool
}

// File is a file of a site.
type File struct {
	Name   string // its path in the site
	Tag    string // digest of the content, for the ETag
	Plain  Part
	Brotli *Part // nil if there is no copy
	Gzip   *Part
}

// Part is the position of a file or a copy in the archive.
type Part struct {
	at   int64
	Size int64
}

// Open reads the list of files of a pack.
func Open(in io.ReaderAt, size int64) (*Pack, error) {
	r, err := zip.NewReader(in, size)
	if err != nil {
		return nil, fmt.Errorf("open pack: %w", err)
	}
	p := &Pack{in: in, files: make(map[string]*File, len(r.File)), dirs: map[string]bool{"": true}}
	for _, f := range r.File {
		if name, ok := strings.CutPrefix(f.Name, plainDir); ok {
			part, err := partOf(f)
			if err != nil {
				return nil, err
			}
			p.files[name] = &File{Name: name, Tag: f.Comment, Plain: *part}
			for dir := path.Dir(name); dir != "." && !p.dirs[dir]; dir = path.Dir(dir) {
				p.dirs[dir] = true
			}
		}
	}
	for _, f := range r.File {
		if err := p.addCopy(f); err != nil {
			return nil, err
		}
	}
	p.adopt(".br", func(f *File) **Part { return &f.Brotli })
	p.adopt(".gz", func(f *File) **Part { return &f.Gzip })
	return p, nil
}

func partOf(f *zip.File) (*Part, error) {
	if f.Method != zip.Store || f.CompressedSize64 != f.UncompressedSize64 {
		return nil, errors.New("open pack: an entry is compressed")
	}
	at, err := f.DataOffset()
	if err != nil {
		return nil, fmt.Errorf("open pack: %w", err)
	}
	return &Part{at, int64(f.UncompressedSize64)}, nil
}

func (p *Pack) addCopy(f *zip.File) error {
	dir, name, _ := strings.Cut(f.Name, "/")
	of := p.files[name]
	if of == nil || dir+"/" == plainDir {
		return nil
	}
	part, err := partOf(f)
	if err != nil {
		return err
	}
	switch dir + "/" {
	case brotliDir:
		of.Brotli = part
	case gzipDir:
		of.Gzip = part
	}
	return nil
}

// adopt uses a compressed file of the site, such as a.css.br, as the compressed copy
// of the file without the suffix.
func (p *Pack) adopt(suffix string, place func(*File) **Part) {
	for name, f := range p.files {
		if of := p.files[strings.TrimSuffix(name, suffix)]; of != nil && of != f {
			*place(of) = &f.Plain
		}
	}
}

// Find returns the file with a path, or nil if it does not exist.
func (p *Pack) Find(name string) *File { return p.files[name] }

// Dir reports whether a directory exists.
func (p *Pack) Dir(name string) bool { return p.dirs[name] }

// Len returns the number of files.
func (p *Pack) Len() int { return len(p.files) }

// Read returns a reader of a part.
func (p *Pack) Read(part Part) *io.SectionReader {
	return io.NewSectionReader(p.in, part.at, part.Size)
}
