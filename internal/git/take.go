package git

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
)

// Take copies a commit with its history from another repository into r, as far
// as no ref of r leads to it. No one sees it before UpdateRefs; it survives a
// crash when Take returns. It returns ErrNotFound for a commit that is not
// there.
func (r Repo) Take(ctx context.Context, from Repo, id OID) error {
	if from.path == r.path {
		return nil
	}
	if _, err := from.commit(ctx, id); err != nil {
		return err
	}
	refs, err := r.Refs(ctx, RefOptions{plain: true})
	if err != nil {
		return err
	}
	var in strings.Builder
	in.WriteString(string(id) + "\n--not\n")
	for _, ref := range refs {
		in.WriteString(string(ref.ID) + "\n")
	}
	q, err := r.newQuarantine()
	if err != nil {
		return err
	}
	defer q.discard()
	args := []string{"pack-objects", "-q", "--revs", "--delta-base-offset", filepath.Join(q.dir, "pack", "pack")}
	if _, err := r.With(from).output(ctx, command{work: writing, args: args, in: strings.NewReader(in.String())}); err != nil {
		return fmt.Errorf("take %s: %w", id, err)
	}
	return q.migrate()
}
