package lfs

import (
	"context"
	"errors"

	"svc/internal/errs"
	"svc/internal/gitremote"
	"svc/internal/project"
)

// Fetch copies objects from another server. Objects that the server does not have are
// left out. progress is called after each object, with the numbers of processed and of
// copied objects. Invalid; gitremote.Failure.
func (s *Service) Fetch(ctx context.Context, p *project.Project, remote *gitremote.Remote, objects []Pointer, progress func(done, fetched int)) error {
	done, fetched := 0, 0
	for from := 0; from < len(objects); from += gitremote.LFSBatch {
		var batch []gitremote.LFSObject
		for _, o := range objects[from:min(from+gitremote.LFSBatch, len(objects))] {
			batch = append(batch, gitremote.LFSObject{OID: o.OID, Size: o.Size})
		}
		list, err := remote.LFS(ctx, batch)
		if errors.Is(err, gitremote.ErrNoLFS) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, d := range list {
			if !d.Missing() {
				if err := s.fetch(ctx, p, remote, d); err != nil {
					return err
				}
				fetched++
			}
			done++
			progress(done, fetched)
		}
	}
	return nil
}

func (s *Service) fetch(ctx context.Context, p *project.Project, remote *gitremote.Remote, d gitremote.LFSDownload) error {
	content, err := remote.OpenLFS(ctx, d)
	if err != nil {
		return err
	}
	defer content.Close()
	err = s.Put(ctx, p, Pointer{OID: d.OID, Size: d.Size}, content)
	if errs.Is(err, errs.KindTooLarge) || errs.Is(err, errs.KindUnprocessable) || errs.Is(err, errs.KindInvalid) {
		refusal, _ := errs.As(err)
		return errs.Invalid("The LFS object %.12s cannot be imported: %s", d.OID, refusal.Text).Because(err)
	}
	return err
}
