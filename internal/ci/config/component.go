package config

import (
	"errors"
	"io/fs"
	"strings"
)

// component sets the project, name and version of a request from the address of a
// component, <host>/<project>/<name>@<version>.
func (r *reader) component(q request, address string) ([]request, error) {
	path, version, ok := cutLast(address, '@')
	if !ok || version == "" {
		return nil, r.fail(q, "Component path `%s` needs a version: use `@<version>`", address)
	}
	host, path, _ := strings.Cut(path, "/")
	if r.src.Host == "" || !strings.EqualFold(host, r.src.Host) {
		return nil, r.fail(q, "Component `%s` is not on this server: its address starts with `$CI_SERVER_FQDN/`", address)
	}
	project, name, ok := cutLast(path, '/')
	if !ok || name == "" || !strings.Contains(project, "/") {
		return nil, r.fail(q, "Component `%s` - content not found", address)
	}
	q.location, q.project, q.ref, q.name = address, project, version, name
	return []request{q}, nil
}

// componentContext are the values of spec:component, which a component can read. It is
// empty for other files.
type componentContext struct{ name, sha, version, reference string }

// values returns the requested values. Missing values are null.
func (c componentContext) values(asked []string) map[string]*node {
	found := make(map[string]*node, len(asked))
	for _, name := range asked {
		value := map[string]string{"name": c.name, "sha": c.sha, "version": c.version, "reference": c.reference}[name]
		kind := text
		if value == "" {
			kind = null
		}
		found[name] = newScalar(kind, value, Pos{})
	}
	return found
}

func cutLast(text string, sep byte) (before, after string, found bool) {
	if i := strings.LastIndexByte(text, sep); i >= 0 {
		return text[:i], text[i+1:], true
	}
	return text, "", false
}

// fetchComponent reads templates/<name>.yml, or templates/<name>/template.yml, from the
// project of a component.
func (r *reader) fetchComponent(f file, q request, inner *file) ([]byte, error) {
	missing := r.fail(q, "Component `%s` - content not found", q.location)
	files := f.access.scope.in.Files
	if f.access.component == nil || files == nil {
		return nil, missing
	}
	at, version, err := f.access.component(r.ctx, q.project, q.ref)
	if errors.Is(err, fs.ErrNotExist) || err == nil && at.Commit == "" {
		return nil, missing
	}
	if err != nil {
		return nil, err
	}
	inner.component = componentContext{name: q.name, sha: at.Commit, version: version, reference: q.ref}
	for _, path := range []string{"templates/" + q.name + ".yml", "templates/" + q.name + "/template.yml"} {
		inner.at, inner.local, inner.name, inner.path = at, true, q.project+":"+path, path
		content, err := files.Read(r.ctx, at, path, r.limits.FileBytes)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		return r.checked(q, content, err, "Component `"+q.location+"`")
	}
	return nil, missing
}
