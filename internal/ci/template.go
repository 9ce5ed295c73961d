package ci

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"svc/internal/db"
	"svc/internal/errs"
)

// ownTemplates are the built-in templates.
//
//go:embed templates
var ownTemplates embed.FS

// templateSuffix is the suffix of template files, as include:template names
// them.
const templateSuffix = ".gitlab-ci.yml"

// Template is a CI/CD configuration to start from or include.
type Template struct {
	Key     string // path of the file without the suffix
	Content string
}

// Templates lists all templates by key, without their content. No permission is
// needed.
func (s *Service) Templates(ctx context.Context, pg db.Paging) (db.Page[Template], error) {
	keys := map[string]bool{}
	for _, in := range s.templates() {
		err := fs.WalkDir(in, ".", func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) && path == "." {
				return fs.SkipAll // the operator's directory does not exist
			}
			if key, ok := strings.CutSuffix(path, templateSuffix); err == nil && ok && !d.IsDir() && key != "" {
				keys[key] = true
			}
			return errors.Join(err, ctx.Err())
		})
		if err != nil {
			return db.Page[Template]{}, fmt.Errorf("list CI templates: %w", err)
		}
	}
	return db.Pick(slices.Sorted(maps.Keys(keys)), pg, func(key string) (Template, error) { return Template{Key: key}, nil })
}

// Template returns a template. No permission is needed. NotFound.
func (s *Service) Template(_ context.Context, key string) (Template, error) {
	content, err := fs.ReadFile(s.templates(), key+templateSuffix)
	if !fs.ValidPath(key) || errors.Is(err, fs.ErrNotExist) {
		return Template{}, errs.NotFound("gitlab_ci_yml")
	}
	if err != nil {
		return Template{}, fmt.Errorf("read CI template %s: %w", key, err)
	}
	return Template{key, string(bytes.ToValidUTF8(content, []byte("\uFFFD")))}, nil
}

// layers is a file system of several layers. The first layer that has a file
// provides it.
type layers []fs.FS

// templates returns the templates of the operator, then the built-in ones.
func (s *Service) templates() layers {
	own, err := fs.Sub(ownTemplates, "templates")
	if err != nil {
		panic(err) // the name is valid
	}
	if s.Site.TemplateDir == "" {
		return layers{own}
	}
	return layers{os.DirFS(s.Site.TemplateDir), own}
}

// Open implements fs.FS.
func (l layers) Open(name string) (fs.File, error) {
	for _, in := range l {
		f, err := in.Open(name)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}
