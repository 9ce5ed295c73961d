package packages

import (
	"context"
	"io"
	"regexp"
	"strings"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// GenericFile names a file of a generic package.
type GenericFile struct {
	Name    string // of the package
	Version string
	Path    string // of the file: names that "/" separates
}

var (
	genericName    = regexp.MustCompile(`\A[A-Za-z0-9._+-]+\z`)
	genericVersion = regexp.MustCompile(`\A\.?[A-Za-z0-9_+.-]+\z`)
	genericPart    = regexp.MustCompile(`\A[A-Za-z0-9._+-][A-Za-z0-9._~+@ -]*\z`)
)

func (g *GenericFile) check() error {
	switch {
	case len(g.Name) > maxName || !genericName.MatchString(g.Name) || dots(g.Name):
		return errs.Invalid("package_name is invalid")
	case len(g.Version) > maxName || !genericVersion.MatchString(g.Version) || dots(g.Version):
		return errs.Invalid("package_version is invalid")
	case len(g.Path) > maxName:
		return errs.Invalid("file_name is invalid")
	}
	for part := range strings.SplitSeq(g.Path, "/") {
		if !genericPart.MatchString(part) || dots(part) {
			return errs.Invalid("file_name is invalid")
		}
	}
	return nil
}

// dots reports whether a name has a special meaning in paths.
func dots(name string) bool { return name == "." || name == ".." }

// PublishGeneric adds a file to a generic package. Developers and above, deploy
// tokens that may write, and jobs. NotFound; Forbidden if the package is protected
// or has the file and duplicates are not allowed; Invalid; TooLarge.
func (s *Service) PublishGeneric(ctx context.Context, by actor.Actor, ref project.Ref, g GenericFile, status Status, from io.Reader) (*Package, *File, error) {
	p, err := s.change(ctx, by, ref)
	if err != nil {
		return nil, nil, err
	}
	if err := g.check(); err != nil {
		return nil, nil, err
	}
	if err := s.mayPush(ctx, s.DB, by, p, Generic, g.Name); err != nil {
		return nil, nil, err
	}
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return nil, nil, err
	}
	rules, err := settingsAbove(ctx, s.DB, p.NamespaceID)
	if err != nil {
		return nil, nil, err
	}
	c, err := s.store(ctx, from, settings.MaxGenericMegabytes)
	if err != nil {
		return nil, nil, err
	}
	first := status
	if first == "" {
		first = Default
	}
	return s.publish(ctx, by, p, draft{
		pkg:  Package{Type: Generic, Name: g.Name, lookup: g.Name, Version: g.Version, Status: first, metadata: "{}"},
		file: File{Name: g.Path, metadata: "{}"},
		admit: func(tx *db.Tx, k *Package, added bool, there *File) error {
			if there != nil {
				allowed, err := rules.allows(k)
				if err != nil {
					return err
				}
				if !allowed {
					return errs.Forbidden("Duplicate package is not allowed")
				}
			}
			if added || status == "" || status == k.Status {
				return nil
			}
			k.Status = status
			return updatePackage(ctx, tx, k.ID, status, k.metadata, s.Now())
		},
	}, c)
}

// OpenGeneric opens a file of a generic package, the newest of its name. NotFound.
func (s *Service) OpenGeneric(ctx context.Context, by actor.Actor, ref project.Ref, g GenericFile) (*Content, error) {
	p, err := s.view(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	k, err := findVersion(ctx, s.DB, p.ID, Generic, g.Name, g.Version)
	if err != nil {
		return nil, err
	}
	f, err := findFileNamed(ctx, s.DB, k.ID, g.Path)
	if err != nil {
		return nil, err
	}
	return s.open(ctx, f)
}
