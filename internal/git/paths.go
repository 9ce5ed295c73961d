package git

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
)

// maxPathBytes is the maximum total length of the paths that Paths returns.
const maxPathBytes = 32 << 20

// Paths returns the paths of the files in a revision in git's order, up to limit,
// and whether there are more. Paths that are not UTF-8 are skipped, because no URL
// could refer to them. It returns ErrBadRevision and ErrNotFound.
func (r Repo) Paths(ctx context.Context, rev string, limit int) (paths []string, more bool, err error) {
	tree, err := r.ResolveTree(ctx, rev)
	if err != nil || tree == EmptyTree {
		return nil, false, err
	}
	size := 0
	err = r.run(ctx, command{args: []string{"ls-tree", "-r", "-z", "--full-tree", "--name-only", string(tree)}}, func(out io.Reader) error {
		in := bufio.NewReaderSize(out, 64<<10)
		for {
			path, err := in.ReadString(0)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if path = path[:len(path)-1]; strings.ToValidUTF8(path, "") != path {
				continue
			}
			if size += len(path); len(paths) == limit || size > maxPathBytes {
				more = true
				return errEnough
			}
			paths = append(paths, path)
		}
	})
	return paths, more, err
}
