package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"svc/internal/git/pack"
	"svc/internal/git/pktline"
)

// Take copies a commit and its history from another repository, except for objects
// reachable from refs of r. The commit is durable when Take returns, but not
// reachable before UpdateRefs. It returns ErrNotFound if the commit does not
// exist.
func (r Repo) Take(ctx context.Context, from Repo, id OID) (err error) {
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
	q, err := r.newQuarantine(ctx)
	if err != nil {
		return err
	}
	defer q.discard()
	defer q.cause(ctx, &err)
	args := []string{"pack-objects", "-q", "--revs", "--delta-base-offset", filepath.Join(q.dir, "pack", "pack")}
	if _, err := r.With(from).output(ctx, command{work: writing, args: args, in: strings.NewReader(in.String())}); err != nil {
		return fmt.Errorf("take %s: %w", id, err)
	}
	return q.migrate()
}

// TakePack receives a pack that the caller reads from elsewhere, and updates refs,
// with the checks of a push: all of them or none, unless Separate is set. Refused in each change is the
// reason why it was not made. in is not read if all changes are deletions.
func (r Repo) TakePack(ctx context.Context, in io.Reader, changes []*RefChange, o PushOptions) (*Push, error) {
	if len(changes) > maxChanges {
		return nil, fmt.Errorf("take a pack: %d refs: %w", len(changes), ErrTooLarge)
	}
	p := &receiver{repo: r, o: o, out: &lockedWriter{w: io.Discard}, large: r.engine.large,
		request: &request{changes: changes, options: o.Options, capabilities: map[string]bool{"atomic": !o.Separate}}}
	push, err := p.receive(ctx, bufio.NewReaderSize(in, 64<<10))
	failure, own := errors.AsType[*Error](err)
	switch {
	case err == nil:
		return push, nil
	case errors.Is(err, ErrTooLarge), errors.Is(err, pack.ErrObjectSize), errors.Is(err, pack.ErrTotal):
		return push, fmt.Errorf("take a pack: %w: %w", ErrTooLarge, err)
	case own && failure.Exit > 0 && ctx.Err() == nil, errors.Is(err, pktline.ErrMalformed), errors.Is(err, pack.ErrMalformed):
		return push, fmt.Errorf("%w: %w", ErrPack, err)
	}
	return push, fmt.Errorf("take a pack: %w", err)
}

// ErrPack means that a pack is incomplete, or that git rejected its objects.
var ErrPack = errors.New("the pack cannot be taken")
