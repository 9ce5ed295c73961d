package packages

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/packages/pypi"
	"svc/internal/project"
)

// PyPIUpload is a distribution as clients send it.
type PyPIUpload struct {
	Name           string
	Version        string
	Filename       string
	RequiresPython string
	Summary        string
	SHA256         string // of the file, as the client has computed it; may be empty
	MD5            string
	Content        io.Reader
}

// pypiPackage is the metadata of a PyPI package.
type pypiPackage struct {
	Summary        string `json:"summary,omitempty"`
	RequiresPython string `json:"requires_python,omitempty"`
}

// pypiFile is the metadata of a file of a PyPI package.
type pypiFile struct {
	RequiresPython string `json:"requires_python,omitempty"`
}

// maxSummary is the length of a summary in bytes.
const maxSummary = 1024

func (u *PyPIUpload) check() error {
	if err := pypi.CheckName(u.Name); err != nil {
		return err
	}
	if err := pypi.CheckVersion(u.Version); err != nil {
		return err
	}
	if err := pypi.CheckFile(u.Filename, u.Name); err != nil {
		return err
	}
	return pypi.CheckRange(u.RequiresPython)
}

// MayPublish returns an error if the actor may not publish packages in a project, so
// that clients are refused before they send one. NotFound; Forbidden.
func (s *Service) MayPublish(ctx context.Context, by actor.Actor, ref project.Ref) error {
	_, err := s.change(ctx, by, ref)
	return err
}

// PublishPyPI adds a distribution to a PyPI package. Developers and above, deploy
// tokens that may write, and jobs. NotFound; Forbidden if the package is protected;
// Invalid if the package has the file; TooLarge.
func (s *Service) PublishPyPI(ctx context.Context, by actor.Actor, ref project.Ref, u PyPIUpload) (*Package, error) {
	p, err := s.change(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	if err := u.check(); err != nil {
		return nil, err
	}
	lookup := pypi.Normalize(u.Name)
	if err := s.mayPush(ctx, s.DB, by, p, PyPI, u.Name); err != nil {
		return nil, err
	}
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return nil, err
	}
	c, err := s.store(ctx, u.Content, settings.MaxPyPIMegabytes)
	if err != nil {
		return nil, err
	}
	if err := u.compare(c); err != nil {
		return nil, firstOf(err, s.drop(ctx, c))
	}
	summary := strings.ToValidUTF8(u.Summary[:min(len(u.Summary), maxSummary)], "")
	about, err := json.Marshal(pypiPackage{Summary: summary, RequiresPython: u.RequiresPython})
	if err != nil {
		return nil, firstOf(err, s.drop(ctx, c))
	}
	of, err := json.Marshal(pypiFile{RequiresPython: u.RequiresPython})
	if err != nil {
		return nil, firstOf(err, s.drop(ctx, c))
	}
	k, _, err := s.publish(ctx, by, p, draft{
		pkg:  Package{Type: PyPI, Name: u.Name, lookup: lookup, Version: u.Version, Status: Default, metadata: string(about)},
		file: File{Name: u.Filename, metadata: string(of)},
		admit: func(tx *db.Tx, _ *Package, _ bool, there *File) error {
			if there != nil {
				return errs.Refused("Validation failed: File name has already been taken")
			}
			return nil
		},
	}, c)
	return k, err
}

// compare refuses a file with another digest than the client has computed.
func (u *PyPIUpload) compare(c *content) error {
	if c.size == 0 {
		return errs.Invalid("the file is empty")
	}
	if u.SHA256 != "" && !strings.EqualFold(u.SHA256, c.sha256) || u.MD5 != "" && !strings.EqualFold(u.MD5, c.md5) {
		return errs.Invalid("the file does not have the digest that was sent")
	}
	return nil
}

// pypiProjects returns the projects at a place whose PyPI packages the actor may
// read. NotFound.
func (s *Service) pypiProjects(ctx context.Context, by actor.Actor, at Place, find func(groupID int64) ([]int64, error)) ([]int64, error) {
	if at.Project != "" {
		p, err := s.view(ctx, by, at.Project)
		if err != nil {
			return nil, err
		}
		return []int64{p.ID}, nil
	}
	list, err := s.group(ctx, by, at.Group, find)
	return idsOf(list), err
}

// namesAtOnce is the number of names that are read at once.
const namesAtOnce = 1000

// PyPIIndex calls f for the normalized name of each PyPI package of a project or
// group. NotFound is returned before the first call.
func (s *Service) PyPIIndex(ctx context.Context, by actor.Actor, at Place) (func(f func(name string) error) error, error) {
	projects, err := s.pypiProjects(ctx, by, at, func(groupID int64) ([]int64, error) {
		return findProjectsOf(ctx, s.DB, groupID, PyPI, maxCandidates)
	})
	if err != nil {
		return nil, err
	}
	return func(f func(name string) error) error {
		after := ""
		for {
			list, err := names(ctx, s.DB, projects, PyPI, after, namesAtOnce)
			if err != nil {
				return fmt.Errorf("names of packages: %w", err)
			}
			if len(list) == 0 {
				return nil
			}
			for _, name := range list {
				if err := f(name); err != nil {
					return err
				}
			}
			after = list[len(list)-1]
		}
	}, nil
}

// PyPIFile is a distribution of a PyPI package.
type PyPIFile struct {
	ProjectID      int64
	Name           string
	SHA256         string
	RequiresPython string
}

// PyPIFiles returns a function that calls f for each distribution of a PyPI package
// of a project or group. NotFound.
func (s *Service) PyPIFiles(ctx context.Context, by actor.Actor, at Place, name string) (func(f func(PyPIFile) error) error, error) {
	if !utf8.ValidString(name) || len(name) > maxName {
		return nil, errs.NotFound("Package")
	}
	lookup := pypi.Normalize(name)
	projects, err := s.pypiProjects(ctx, by, at, func(groupID int64) ([]int64, error) {
		return findProjectsWith(ctx, s.DB, PyPI, lookup, inGroup, maxCandidates, groupID)
	})
	if err != nil {
		return nil, err
	}
	first, err := findVersions(ctx, s.DB, projects, PyPI, lookup, 0, 1)
	if err != nil {
		return nil, fmt.Errorf("versions of a package: %w", err)
	}
	if len(first) == 0 {
		return nil, errs.NotFound("Package")
	}
	return func(f func(PyPIFile) error) error {
		return s.eachVersion(ctx, projects, PyPI, lookup, func(list []*Package) error {
			ids := make([]int64, len(list))
			for i, k := range list {
				ids[i] = k.ID
			}
			files, err := filesOf(ctx, s.DB, ids)
			if err != nil {
				return fmt.Errorf("files of a package: %w", err)
			}
			for _, file := range files {
				var m pypiFile
				if err := json.Unmarshal([]byte(file.metadata), &m); err != nil {
					return fmt.Errorf("metadata of package file %d: %w", file.ID, err)
				}
				if err := f(PyPIFile{ProjectID: file.ProjectID, Name: file.Name, SHA256: file.SHA256, RequiresPython: m.RequiresPython}); err != nil {
					return err
				}
			}
			return nil
		})
	}, nil
}

// OpenPyPI opens a distribution by its digest and name. NotFound.
func (s *Service) OpenPyPI(ctx context.Context, by actor.Actor, at Place, sha256, name string) (*Content, error) {
	sha256 = strings.ToLower(sha256)
	projects, err := s.pypiProjects(ctx, by, at, func(groupID int64) ([]int64, error) {
		return findProjectsWithFile(ctx, s.DB, groupID, sha256, name, maxCandidates)
	})
	if err != nil {
		return nil, err
	}
	f, err := findFileByDigest(ctx, s.DB, projects, PyPI, sha256, name)
	if err != nil {
		return nil, err
	}
	return s.open(ctx, f)
}
