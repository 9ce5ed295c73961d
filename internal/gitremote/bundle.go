package gitremote

import (
	"context"
	"fmt"
	"io"

	"svc/internal/git"
)

// Bundle writes the refs that keep accepts, with all their objects, as a git bundle
// (gitformat-bundle(5)). It writes nothing, and returns false, if there are none.
func (r *Remote) Bundle(ctx context.Context, refs *Refs, w io.Writer, keep func(ref string) bool) (bool, error) {
	var want []git.OID
	for _, ref := range refs.List {
		if keep(ref.Name) {
			want = append(want, ref.ID)
		}
	}
	if len(want) == 0 {
		return false, nil
	}
	pack, err := r.Pack(ctx, refs, want, nil)
	if err != nil {
		return false, err
	}
	defer pack.Close()
	if _, err := io.WriteString(w, "# v2 git bundle\n"); err != nil {
		return false, err
	}
	for _, ref := range refs.List {
		if !keep(ref.Name) {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s %s\n", ref.ID, ref.Name); err != nil {
			return false, err
		}
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return false, err
	}
	_, err = io.Copy(w, pack)
	return err == nil, err
}
