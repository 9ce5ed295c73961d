package packages

import (
	"context"
	"errors"
	"fmt"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// Limits of the names of packages and files in bytes, and of the files of one
// package.
const (
	maxName  = 255
	maxFiles = 20_000
)

// draft is a file that is published, with the package that it belongs to.
type draft struct {
	pkg  Package
	file File
	// admit can refuse the file in the transaction. added reports whether the package
	// is new; there is the newest file of the same name, or nil.
	admit func(tx *db.Tx, k *Package, added bool, there *File) error
	// published, if not nil, is called in the transaction after the file was added.
	published func(tx *db.Tx, k *Package, f *File) error
}

// publish saves a stored file of a package, which is created with its first file. If
// it is refused, the content is dropped.
func (s *Service) publish(ctx context.Context, by actor.Actor, p *project.Project, d draft, c *content) (*Package, *File, error) {
	pipeline, err := s.pipeline(ctx, by, p)
	if err != nil {
		return nil, nil, errors.Join(err, s.drop(ctx, c))
	}
	now := s.Now()
	k, f := d.pkg, d.file
	k.ProjectID, k.CreatedAt, k.UpdatedAt = p.ID, now, now
	if by.ID > 0 {
		k.CreatorID = &by.ID
	}
	var saved *Package
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := s.mayPush(ctx, tx, by, p, k.Type, k.Name); err != nil {
			return err
		}
		var added bool
		var err error
		if saved, added, err = insertPackage(ctx, tx, &k); err != nil {
			return err
		}
		there, err := findFileNamed(ctx, tx, saved.ID, f.Name)
		if errs.Is(err, errs.KindNotFound) {
			there, err = nil, nil
		}
		if err != nil {
			return err
		}
		if err := d.admit(tx, saved, added, there); err != nil {
			return err
		}
		n, err := countFiles(ctx, tx, saved.ID)
		if err != nil {
			return err
		}
		if n >= maxFiles {
			return errs.Invalid("a package may have %d files", maxFiles)
		}
		if f.blobID, err = s.keep(ctx, tx, c); err != nil {
			return err
		}
		f.PackageID, f.ProjectID, f.Size, f.CreatedAt = saved.ID, p.ID, c.size, now
		if err := insertFile(ctx, tx, &f); err != nil {
			return err
		}
		if err := s.addSize(ctx, tx, p, c.size); err != nil {
			return err
		}
		if pipeline != 0 {
			if err := insertPipeline(ctx, tx, saved.ID, pipeline); err != nil {
				return err
			}
		}
		if d.published != nil {
			if err := d.published(tx, saved, &f); err != nil {
				return err
			}
		}
		return project.Touch(ctx, tx, p, now)
	})
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("publish package: %w", err), s.drop(ctx, c))
	}
	f.SHA256, f.SHA1, f.MD5 = c.sha256, c.sha1, c.md5
	return saved, &f, nil
}

// pipeline returns the ID of the pipeline of the job that publishes the package, if it
// is a pipeline of the project; 0 otherwise.
func (s *Service) pipeline(ctx context.Context, by actor.Actor, p *project.Project) (int64, error) {
	if by.Job == nil || by.Job.ProjectID != p.ID {
		return 0, nil
	}
	j, err := s.CI.CurrentJob(ctx, by)
	if err != nil {
		return 0, fmt.Errorf("job %d: %w", by.Job.ID, err)
	}
	return j.PipelineID, nil
}

// addSize adds to the size of the packages of a project, and refuses a file that does
// not fit into its storage.
func (s *Service) addSize(ctx context.Context, tx *db.Tx, p *project.Project, size int64) error {
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return err
	}
	sum, err := addSize(ctx, tx, p.ID, size)
	if limit := int64(settings.MaxPackageStorageMegabytes) << 20; err == nil && limit > 0 && sum > limit {
		return errs.TooLarge("the packages of a project may have %d MB together", settings.MaxPackageStorageMegabytes)
	}
	return err
}
