package packages

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// Delete deletes a package with its files. Maintainers and above; a protection rule
// may require more. NotFound; Forbidden.
func (s *Service) Delete(ctx context.Context, by actor.Actor, ref project.Ref, id int64) error {
	p, err := s.remove(ctx, by, ref)
	if err != nil {
		return err
	}
	k, err := findPackage(ctx, s.DB, p.ID, id)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error { return s.deletePackage(ctx, tx, by, p, k) })
	if err != nil {
		return fmt.Errorf("delete package %d: %w", id, err)
	}
	return nil
}

func (s *Service) deletePackage(ctx context.Context, tx *db.Tx, by actor.Actor, p *project.Project, k *Package) error {
	if err := tx.Lock(ctx, "packages", k.ID); err != nil { // a file may be added
		return err
	}
	if err := s.mayDelete(ctx, tx, by, p, k); err != nil {
		return err
	}
	if err := releasePackage(ctx, tx, k.ID, s.Now()); err != nil {
		return err
	}
	if err := deletePackage(ctx, tx, k); err != nil {
		return err
	}
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: "package_registry_package_deleted", Entity: p.Entity(), Target: k.target(), Details: audit.Details{Remove: "package", From: string(k.Type)},
	})
}

func (k *Package) target() audit.Target {
	return audit.Target{Type: "Package", ID: k.ID, Details: k.Name + "/" + k.Version}
}

// DeleteFile deletes a file of a package. Maintainers and above; a protection rule
// may require more. NotFound; Forbidden.
func (s *Service) DeleteFile(ctx context.Context, by actor.Actor, ref project.Ref, packageID, fileID int64) error {
	p, err := s.remove(ctx, by, ref)
	if err != nil {
		return err
	}
	k, err := findPackage(ctx, s.DB, p.ID, packageID)
	if err != nil {
		return err
	}
	f, err := findFile(ctx, s.DB, p.ID, fileID)
	if err != nil {
		return err
	}
	if f.PackageID != k.ID {
		return errs.NotFound("Package file")
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "packages", k.ID); err != nil { // it may be deleted as a whole
			return err
		}
		if err := s.mayDelete(ctx, tx, by, p, k); err != nil {
			return err
		}
		if err := s.deleteFile(ctx, tx, f); err != nil {
			return err
		}
		return audit.Record(ctx, tx, by, s.Now(), audit.Event{
			Type: "package_registry_package_file_deleted", Entity: p.Entity(), Target: k.target(), Details: audit.Details{Remove: "package_file", From: f.Name},
		})
	})
	if err != nil {
		return fmt.Errorf("delete package file %d: %w", fileID, err)
	}
	return nil
}

func (s *Service) deleteFile(ctx context.Context, tx *db.Tx, f *File) error {
	if err := releaseBlob(ctx, tx, f.blobID, s.Now()); err != nil {
		return err
	}
	return deleteFile(ctx, tx, f)
}
