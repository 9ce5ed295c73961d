package repo

import (
	"context"
	"errors"
	"io"
	"strings"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// ArchiveOptions are the options of an archive.
type ArchiveOptions struct {
	Ref    string // a branch, tag or commit; default: the default branch
	Path   string // only this file or directory
	Format git.ArchiveFormat
	// WithoutLFS leaves LFS pointers as they are.
	WithoutLFS bool
}

// ArchiveFilter returns the function that replaces LFS pointers in archives of a project
// by their objects; nil if there is nothing to replace.
type ArchiveFilter func(ctx context.Context, p *project.Project) (git.TarFilter, error)

// OnArchive registers the ArchiveFilter. It is called at start-up.
func (s *Service) OnArchive(f ArchiveFilter) { s.archiveFilter = f }

// Archive is an archive that is ready to be written.
type Archive struct {
	// Name is the name of the file, without its extension, and of the top-level
	// directory in the archive.
	Name   string
	Commit git.OID
	repo   git.Repo
	o      git.ArchiveOptions
}

// Archive prepares an archive, for users who may read the repository. NotFound
// if the ref does not exist.
func (s *Service) Archive(ctx context.Context, by actor.Actor, ref project.Ref, o ArchiveOptions) (*Archive, error) {
	p, r, err := s.read(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	at, err := s.commitAt(ctx, p, r, o.Ref)
	if err != nil {
		return nil, missing(err, "File")
	}
	path := strings.Trim(o.Path, "/")
	if _, err := r.Entry(ctx, string(at), path); err != nil {
		return nil, missing(err, "File")
	}
	var filter git.TarFilter
	if s.archiveFilter != nil && !o.WithoutLFS {
		if filter, err = s.archiveFilter(ctx, p); err != nil {
			return nil, err
		}
	}
	name := archiveName(p, o.Ref, at, path)
	return &Archive{name, at, r.Whole(), git.ArchiveOptions{Rev: string(at), Path: path, Prefix: name, Format: o.Format, Filter: filter}}, nil
}

func archiveName(p *project.Project, ref string, at git.OID, path string) string {
	if ref == "" {
		ref = p.DefaultBranch
	}
	parts := []string{p.Path, ref, string(at)}
	if path != "" {
		parts = append(parts, path)
	}
	// File systems limit names to 255 bytes, and the extension needs some of
	// them.
	const most = 240
	name := strings.ReplaceAll(strings.Join(parts, "-"), "/", "-")
	if len(name) > most {
		name = strings.ToValidUTF8(p.Path[:min(len(p.Path), most-len(at)-1)], "") + "-" + string(at)
	}
	return name
}

// Write streams the archive; it ends with ctx. Unavailable, with nothing
// written, if the format is not available on this server.
func (a *Archive) Write(ctx context.Context, w io.Writer) error {
	err := a.repo.Archive(ctx, w, a.o)
	if errors.Is(err, git.ErrUnsupported) {
		return errs.Unavailable("This server does not support archives of this format.").Because(err)
	}
	return missing(err, "File")
}
