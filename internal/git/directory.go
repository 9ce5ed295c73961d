package git

import (
	"context"
	"fmt"
	"strings"

	"svc/internal/git/object"
)

// Directory lists one directory like Tree, but with subdirectories first. After
// and Limit are those of Tree.
func (r Repo) Directory(ctx context.Context, o TreeOptions) ([]Entry, error) {
	path := strings.Trim(o.Path, "/")
	at, err := r.Entry(ctx, o.Rev, path)
	if err != nil {
		return nil, err
	}
	if at.Type != TypeTree {
		return nil, fmt.Errorf("%.200q is no directory: %w", path, ErrNotFound)
	}
	entries, err := r.entries(ctx, at.OID)
	if err != nil {
		return nil, err
	}
	prefix := ""
	if path != "" {
		prefix = path + "/"
	}
	after := strings.TrimPrefix(o.After, prefix)
	var found []Entry
	for _, dirs := range []bool{true, false} {
		for _, e := range entries {
			if (e.Type == TypeTree) != dirs || passed(e, after) {
				continue
			}
			if o.Limit > 0 && len(found) == o.Limit {
				return found, nil
			}
			e.Path = prefix + e.Name
			found = append(found, e)
		}
	}
	return found, nil
}

// passed reports whether an entry comes before after in the order of Directory.
func passed(e Entry, after string) bool {
	dir := strings.HasSuffix(after, "/")
	switch {
	case after == "":
		return false
	case dir != (e.Type == TypeTree):
		return !dir
	}
	return object.SortName(e) <= after
}
