package lfs

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"

	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/repo"
)

// PointerOf returns the pointer in a file, if LFS is enabled in its project and the
// project has the object; nil for other files. The caller may read the file.
func (s *Service) PointerOf(ctx context.Context, f *repo.FileBlob) (*Pointer, error) {
	if !maybePointer(f.Size) {
		return nil, nil
	}
	enabled, err := s.Enabled(ctx, f.Project)
	if err != nil || !enabled {
		return nil, err
	}
	content, err := f.Open(ctx)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(content, MaxPointer))
	if err = errors.Join(err, content.Close()); err != nil {
		return nil, fmt.Errorf("read pointer: %w", err)
	}
	o, ok := ParsePointer(text)
	if !ok {
		return nil, nil
	}
	if ok, err = s.Has(ctx, f.Project, o); err != nil || !ok {
		return nil, err
	}
	return &o, nil
}

// maxArchived is the maximum size of the objects in one archive, in bytes. Further
// objects are represented by their pointers.
const maxArchived = 10 << 30

// ArchiveFilter returns a filter that replaces pointers in archives of a project by
// their objects; nil if the project has no objects.
func (s *Service) ArchiveFilter(ctx context.Context, p *project.Project) (git.TarFilter, error) {
	enabled, err := s.Enabled(ctx, p)
	if err != nil || !enabled {
		return nil, err
	}
	some, err := holdsAny(ctx, s.DB, p.ID)
	if err != nil || !some {
		return nil, err
	}
	return func(ctx context.Context, to *tar.Writer, from *tar.Reader) error {
		left := int64(maxArchived)
		for {
			h, err := from.Next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("read archive: %w", err)
			}
			if err := s.archive(ctx, p, to, from, h, &left); err != nil {
				return err
			}
		}
	}, nil
}

// archive copies a file of an archive, or writes the object if the file is a pointer.
func (s *Service) archive(ctx context.Context, p *project.Project, to *tar.Writer, from *tar.Reader, h *tar.Header, left *int64) error {
	if h.Typeflag != tar.TypeReg || !maybePointer(h.Size) {
		return entry(to, h, from)
	}
	text := make([]byte, h.Size)
	if _, err := io.ReadFull(from, text); err != nil {
		return fmt.Errorf("read archive: %w", err)
	}
	o, ok := ParsePointer(text)
	if !ok || o.Size > *left {
		return entryOf(to, h, text)
	}
	found, err := s.find(ctx, p, o.OID)
	if errs.Is(err, errs.KindNotFound) || err == nil && found.size != o.Size {
		return entryOf(to, h, text)
	}
	if err != nil {
		return err
	}
	content, err := s.Blobs.Get(ctx, found.blob)
	if err != nil {
		return fmt.Errorf("open LFS object: %w", err)
	}
	defer content.Close()
	*left -= found.size
	h.Size = found.size
	return entry(to, h, content)
}

func entry(to *tar.Writer, h *tar.Header, content io.Reader) error {
	h.Format = tar.FormatUnknown // a larger file may need another format
	if err := to.WriteHeader(h); err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	if h.Typeflag != tar.TypeReg {
		return nil
	}
	if _, err := io.CopyBuffer(onlyWriter{to}, onlyReader{content}, make([]byte, 64<<10)); err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	return nil
}

func entryOf(to *tar.Writer, h *tar.Header, text []byte) error {
	if err := to.WriteHeader(h); err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	_, err := to.Write(text)
	return err
}

// onlyWriter hides all methods but Write, so that a copy uses the given buffer.
type onlyWriter struct{ io.Writer }
