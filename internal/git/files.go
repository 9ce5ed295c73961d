package git

import (
	"context"
	"fmt"
	"path"
	"strings"

	"svc/internal/git/language"
)

// File is a file of a tree.
type File struct {
	Path     string
	OID      OID
	Size     int64
	Language string // empty if unknown
	// Vendored reports that the file is generated, documentation or third-party code.
	Vendored bool
}

// Files lists the regular files of a revision by path. The attributes linguist-*
// in the tree apply. It returns ErrBadRevision and ErrNotFound.
func (r Repo) Files(ctx context.Context, rev string) ([]File, error) {
	tree, err := r.ResolveTree(ctx, rev)
	if err != nil || tree == EmptyTree {
		return nil, err
	}
	found, err := r.sizedFiles(ctx, tree)
	if err != nil {
		return nil, fmt.Errorf("files of %.100q: %w", rev, err)
	}
	rules, err := r.attributeRules(ctx, found)
	if err != nil {
		return nil, fmt.Errorf("attributes of %.100q: %w", rev, err)
	}
	table := r.engine.languages()
	list := make([]File, len(found))
	for i, f := range found {
		a := rules.Of(f.path)
		l := table.Named(a.Language)
		if l == nil {
			l = table.OfName(path.Base(f.path))
		}
		list[i] = File{Path: f.path, OID: f.id, Size: f.size, Language: nameOf(l), Vendored: a.Excluded(f.path)}
	}
	return list, nil
}

func nameOf(l *language.Language) string {
	if l == nil {
		return ""
	}
	return l.Name
}

// LanguageOf returns the language of a script by its shebang line, or an empty
// string.
func (r Repo) LanguageOf(content []byte) string {
	return nameOf(r.engine.languages().OfProgram(content))
}

// Limits of a batch of blobs; a batch has at least one.
const (
	fileBatch      = 256
	fileBatchBytes = 8 << 20
)

// EachBlob calls do with the content of each file, in order. It holds one batch in
// memory. It stops at and returns an error of do.
func (r Repo) EachBlob(ctx context.Context, files []File, do func(f File, content []byte) error) error {
	for len(files) > 0 {
		n, size := 0, int64(0)
		for n < len(files) && n < fileBatch && (n == 0 || size+files[n].Size <= fileBatchBytes) {
			size += files[n].Size
			n++
		}
		found := make([]*Object, 0, n)
		err := r.withReader(ctx, func(p *reader) error {
			found = found[:0]
			for _, f := range files[:n] {
				o, err := p.contents(Info{OID: f.OID, Type: TypeBlob, Size: f.Size})
				if err != nil {
					return err
				}
				found = append(found, o)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("read files: %w", err)
		}
		for i, o := range found {
			if err := do(files[i], o.Content); err != nil {
				return err
			}
		}
		files = files[n:]
	}
	return nil
}

// FindLanguage returns the canonical name of a language, or an empty string if it
// is unknown.
func (e *Engine) FindLanguage(name string) string {
	return nameOf(e.languages().Named(strings.TrimSpace(name)))
}
