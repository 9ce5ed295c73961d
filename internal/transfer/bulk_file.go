package transfer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"svc/internal/actor"
	"svc/internal/blob"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/transfer/archive"
)

// handOver makes an export file from the parts of an entity, and starts its import
// as the user who started the bulk import.
func (s *Service) handOver(ctx context.Context, e *Entity, by actor.Actor, c *checkpoint) error {
	i := &Import{Project: e.Project, UserID: &by.ID, Name: c.State.Name, Path: e.Slug, State: Queued, CreatedAt: s.Now(), file: fmt.Sprintf("%s%d/export.tar.gz", partsAt(e.ID), e.run)}
	var err error
	if i.ParentID, err = s.destination(ctx, by, e.Project, e.Namespace); err != nil {
		return err
	}
	if !e.Project {
		// A name that is not allowed here is replaced by the path.
		err := s.Projects.CheckGroup(ctx, by, project.NewGroup{Name: i.Name, Path: i.Path, ParentID: i.ParentID})
		if refusal, ok := errs.As(err); ok && len(refusal.Fields["name"]) > 0 {
			i.Name = i.Path
		}
	}
	size, err := s.assemble(ctx, e, c, i.file)
	if err != nil {
		return err
	}
	i.Total = 2 * size
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		i.ID, i.draft = 0, nil
		if err := insertImport(ctx, tx, i); err != nil {
			return err
		}
		e.fileID = &i.ID
		if err := saveFile(ctx, tx, e, s.Now()); err != nil {
			return err
		}
		if e.Project {
			if err := s.reserve(ctx, tx, by, i); err != nil {
				return err
			}
		}
		if e.Project {
			return s.Queue.Add(ctx, tx, EntityImportWork{i.ID}, queue.In(remoteLane), queue.Tries(maxTries+1))
		}
		return s.Queue.Add(ctx, tx, i.work(), queue.In(lane), queue.Tries(maxTries+1))
	})
	if isNoRows(err) {
		return errCanceled
	}
	return err
}

// reserve creates the draft of a project. A name that is not allowed here is replaced by
// the path.
func (s *Service) reserve(ctx context.Context, tx *db.Tx, by actor.Actor, i *Import) error {
	to := project.NewProject{Name: i.Name, Path: i.Path, NamespaceID: i.ParentID}
	p, err := s.Projects.BeginProject(ctx, tx, by, to)
	if refusal, ok := errs.As(err); ok && len(refusal.Fields["name"]) > 0 {
		to.Name = i.Path
		p, err = s.Projects.BeginProject(ctx, tx, by, to)
	}
	if err != nil {
		return err
	}
	i.draft = &p.ID
	return saveDraft(ctx, tx, i)
}

// assemble writes the export file of an entity, and returns its size.
func (s *Service) assemble(ctx context.Context, e *Entity, c *checkpoint, key string) (int64, error) {
	in, out := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := s.writeParts(ctx, e, c, out)
		out.CloseWithError(err)
		written <- err
	}()
	size, err := s.Blobs.Put(ctx, key, in, blob.Options{ContentType: "application/gzip"})
	in.CloseWithError(err)
	if failure := <-written; failure != nil && (err == nil || !errors.Is(failure, io.ErrClosedPipe)) {
		return 0, failure
	}
	return size, err
}

func (s *Service) writeParts(ctx context.Context, e *Entity, c *checkpoint, out io.Writer) (err error) {
	kind, groups := archive.Groups(), len(c.State.Groups)
	if e.Project {
		kind, groups = archive.Project(), 1
	}
	w, err := archive.NewWriter(out, kind, s.TempDir, s.Now())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if err := w.Begin(archive.Origin{Name: c.State.Name, Path: c.State.Path, FullPath: c.State.FullPath}); err != nil {
		return err
	}
	parts := map[string][]storedPart{} // by group and part
	for _, p := range c.Parts {
		at := fmt.Sprint(max(p.Group, 1), p.Part)
		parts[at] = append(parts[at], p)
	}
	for n := 1; n <= groups; n++ {
		if !e.Project {
			w.Group()
		}
		for _, part := range kind.Parts() {
			if err := s.writePart(ctx, w, kind, part, parts[fmt.Sprint(n, part)]); err != nil {
				return err
			}
		}
	}
	return w.Finish()
}

func (s *Service) writePart(ctx context.Context, w *archive.Writer, kind archive.Kind, part archive.Part, stored []storedPart) error {
	if !kind.HasRows(part) {
		for _, p := range stored {
			err := w.File(part, p.Name, func(to io.Writer) (bool, error) {
				return true, s.withPart(ctx, p, func(from io.Reader) error {
					_, err := io.Copy(to, from)
					return err
				})
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	return w.Rows(part, func(add func(any) error) error {
		for _, p := range stored {
			err := s.withPart(ctx, p, func(from io.Reader) error {
				for d := json.NewDecoder(bufio.NewReaderSize(from, 64<<10)); ; {
					var row json.RawMessage
					if err := d.Decode(&row); err == io.EOF {
						return nil
					} else if err != nil {
						return err
					}
					if err := add(row); err != nil {
						return err
					}
				}
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Service) withPart(ctx context.Context, p storedPart, read func(io.Reader) error) error {
	file, err := s.Blobs.Get(ctx, p.Key)
	if errs.Is(err, errs.KindNotFound) {
		return errs.Invalid("The stored parts of the import were deleted. Start it again.").Because(err)
	}
	if err != nil {
		return err
	}
	defer file.Close()
	return read(file)
}
