package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/lfs"
	"svc/internal/picture"
	"svc/internal/repo"
	"svc/internal/transfer/archive"
	"svc/internal/transfer/rows"
)

func (f *projectFilling) File(ctx context.Context, p archive.Part, name string, size int64, r io.Reader) error {
	if err := stillGoing(ctx, f.DB, f.i); errors.Is(err, db.ErrNoRows) {
		return errCanceled
	} else if err != nil {
		return err
	}
	_, base := splitPath(name)
	switch p {
	case archive.AvatarPart:
		return f.i.leaveOut(f.Projects.PaintDraft(ctx, f.to.Draft, &picture.File{Name: base, Data: r}), Missing{"avatar", "", "", ""})
	case archive.RepositoryPart:
		return f.repository(ctx, r)
	case archive.WikiPart:
		return f.i.leaveOut(f.Wikis.Fill(ctx, f.to.Draft, f.wiki, r), Missing{"wiki", "", "", ""})
	case archive.LFSPart:
		return f.object(ctx, lfs.Pointer{OID: base, Size: size}, r)
	case archive.UploadFilePart:
		return f.upload(ctx, base, size, r)
	case archive.SnippetFilePart:
		return f.snippet(ctx, base, r)
	}
	return nil
}

func (f *projectFilling) repository(ctx context.Context, r io.Reader) error {
	if err := f.Content.Repos.FillProject(ctx, f.p, f.p.DefaultBranch, r); err != nil {
		return err
	}
	has, err := f.Content.Repos.HasBranch(ctx, f.p, f.p.DefaultBranch)
	if err != nil {
		return err
	}
	if !has && f.p.DefaultBranch != "" {
		return errs.Invalid("it does not have the default branch %.100q", f.p.DefaultBranch)
	}
	f.objects = true
	if f.i.entity != nil {
		return f.fetchLFS(ctx)
	}
	return nil
}

func (f *projectFilling) object(ctx context.Context, o lfs.Pointer, r io.Reader) error {
	if !f.Content.LFS.Allowed(ctx) {
		f.i.Report.count("lfs_object")
		return nil
	}
	return f.Content.LFS.Put(ctx, f.p, o, r)
}

func (f *projectFilling) upload(ctx context.Context, secret string, size int64, r io.Reader) error {
	want, err := rows.UploadSize(ctx, f.DB, f.p.ID, secret)
	if err != nil {
		return err
	}
	if want < 0 && f.i.entity != nil {
		f.filled++ // its row was refused, and is in the report
		return nil
	}
	if want != size {
		return errs.Invalid("uploads.ndjson has no row for it with its size")
	}
	f.filled++
	return f.Content.Uploads.Fill(ctx, f.p.ID, secret, size, r)
}

func (f *projectFilling) snippet(ctx context.Context, name string, r io.Reader) error {
	number, err := strconv.ParseInt(strings.TrimSuffix(name, ".bundle"), 10, 64)
	if err != nil {
		return errs.Invalid("it has no number")
	}
	id := f.to.Snippet(number)
	if id == 0 && f.i.entity != nil && number <= int64(f.to.Snippets()) {
		f.snippets++ // it was refused, and is in the report
		return nil
	}
	if id == 0 {
		return errs.Invalid("snippets.ndjson has no row for it")
	}
	a := &repo.AuxRepo{Kind: repo.SnippetAuxRepo, SnippetID: &id, Storage: f.p.Storage}
	if err := f.DB.Tx(ctx, func(tx *db.Tx) error { return f.Content.Repos.AddAuxRepo(ctx, tx, a) }); err != nil {
		return err
	}
	f.snippets++
	err = f.Content.Repos.FillAuxRepo(ctx, a, f.branches[number-1], r)
	if !f.i.refuses(err) {
		return err
	}
	// A snippet without its files is removed.
	dropped := f.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := rows.DeleteSnippet(ctx, tx, id); err != nil {
			return err
		}
		return f.Content.Repos.DropOrphans(ctx, tx)
	})
	if dropped != nil {
		return dropped
	}
	f.to.ForgetSnippet(number)
	return f.i.leaveOut(err, Missing{"snippets", "", fmt.Sprintf("$%d", number), ""})
}
