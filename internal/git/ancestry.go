package git

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"svc/internal/git/refstore"
)

// MergeBase returns the best common ancestor of all revisions. It returns
// ErrNotFound if a revision does not exist or there is no common ancestor.
func (r Repo) MergeBase(ctx context.Context, revs ...string) (OID, error) {
	ids, err := r.resolveAll(ctx, revs)
	if err != nil {
		return "", err
	}
	if id, ok := r.knownMergeBase(ids); ok {
		return id, nil
	}
	args, key := r.mergeBaseArgs(ids)
	out, err := r.output(ctx, command{args: args, ok: []int{1}})
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(string(out), "\n")
	id, ok := ParseOID(first)
	if !ok {
		return "", fmt.Errorf("merge base of %.200v: %w", revs, ErrNotFound)
	}
	r.engine.cache.put(key, id, 40)
	return id, nil
}

// mergeBaseArgs returns the git command and its cache key, which do not depend on
// the order of the IDs.
func (r Repo) mergeBaseArgs(ids []string) ([]string, cacheKey) {
	ids = slices.Sorted(slices.Values(ids))
	args := append([]string{"merge-base", "--octopus"}, slices.Compact(ids)...)
	return args, cacheKey{r.scope(), kindAnswer, strings.Join(args, "\x00")}
}

// knownMergeBase returns the merge base if it is cached or trivial.
func (r Repo) knownMergeBase(ids []string) (OID, bool) {
	args, key := r.mergeBaseArgs(ids)
	if len(args) == 3 { // all IDs are equal
		return OID(args[2]), true
	}
	v, ok := r.engine.cache.get(key)
	if !ok {
		return "", false
	}
	return v.(OID), true
}

func (r Repo) resolveAll(ctx context.Context, revs []string) ([]string, error) {
	if len(revs) == 0 {
		return nil, fmt.Errorf("no revision: %w", ErrBadRevision)
	}
	ids := make([]string, len(revs))
	for i, rev := range revs {
		id, err := r.ResolveCommit(ctx, rev)
		if err != nil {
			return nil, err
		}
		ids[i] = string(id)
	}
	return ids, nil
}

// IsAncestor reports whether of is an ancestor of descendant. A commit is an
// ancestor of itself.
func (r Repo) IsAncestor(ctx context.Context, of, descendant string) (bool, error) {
	ids, err := r.resolveAll(ctx, []string{of, descendant})
	if err != nil {
		return false, err
	}
	if ids[0] == ids[1] {
		return true, nil
	}
	args := []string{"merge-base", "--is-ancestor", ids[0], ids[1]}
	key := cacheKey{r.scope(), kindAnswer, strings.Join(args, "\x00")}
	if v, ok := r.engine.cache.get(key); ok {
		return v.(bool), nil
	}
	_, err = r.output(ctx, command{args: args})
	var failure *Error
	if errors.As(err, &failure) && failure.Exit == 1 {
		err = nil
	}
	if err != nil {
		return false, err
	}
	isAncestor := failure == nil
	r.engine.cache.put(key, isAncestor, 0)
	return isAncestor, nil
}

// Distance counts how many commits to is ahead of from and behind it. It returns
// ErrBadRevision and ErrNotFound.
func (r Repo) Distance(ctx context.Context, from, to string) (ahead, behind int, err error) {
	ids, err := r.resolveAll(ctx, []string{from, to})
	if err != nil || ids[0] == ids[1] {
		return 0, 0, err
	}
	args := []string{"rev-list", "--count", "--left-right", "--end-of-options", ids[0] + "..." + ids[1], "--"}
	key := cacheKey{r.scope(), kindAnswer, strings.Join(args, "\x00")}
	if v, ok := r.engine.cache.get(key); ok {
		counts := v.([2]int)
		return counts[1], counts[0], nil
	}
	out, err := r.output(ctx, command{args: args})
	if err != nil {
		return 0, 0, err
	}
	if _, err := fmt.Sscan(string(out), &behind, &ahead); err != nil {
		return 0, 0, fmt.Errorf("git rev-list: output %.50q: %w", out, err)
	}
	r.engine.cache.put(key, [2]int{behind, ahead}, 0)
	return ahead, behind, nil
}

// Contains lists the refs below a prefix from which a commit is reachable, by
// name, up to limit; 0 means no limit.
func (r Repo) Contains(ctx context.Context, rev, prefix string, limit int) ([]string, error) {
	id, err := r.ResolveCommit(ctx, rev)
	if err != nil {
		return nil, err
	}
	if !refstore.WellFormedOneLevel(strings.TrimSuffix(prefix, "/")) || strings.HasPrefix(prefix, "-") {
		return nil, fmt.Errorf("%w: %.100q", ErrBadRef, prefix)
	}
	// The answer depends only on the commit and the refs, which are cheaper to read than
	// to compare with a commit.
	sum, err := r.sumRefs(ctx, prefix)
	if err != nil || sum == "" {
		return nil, err
	}
	args := []string{"for-each-ref", "--format=%(refname)", "--contains=" + string(id)}
	if limit > 0 {
		args = append(args, fmt.Sprintf("--count=%d", limit))
	}
	args = append(args, prefix)
	key := cacheKey{r.scope(), kindAnswer, strings.Join(args, "\x00") + "\x00" + sum}
	if v, ok := r.engine.cache.get(key); ok {
		return slices.Clone(v.([]string)), nil
	}
	refs, size := []string{}, 0
	err = r.run(ctx, command{args: args}, func(out io.Reader) error {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			refs, size = append(refs, lines.Text()), size+len(lines.Text())+16
		}
		return lines.Err()
	})
	if err != nil {
		return nil, err
	}
	// A ref that moved while git ran must not be remembered for the refs before.
	if after, err := r.sumRefs(ctx, prefix); err == nil && after == sum {
		r.engine.cache.put(key, slices.Clone(refs), size)
	}
	return refs, nil
}

// sumRefs returns a hash of the refs below a prefix and of what they point to; empty
// if there are none.
func (r Repo) sumRefs(ctx context.Context, prefix string) (string, error) {
	refs, err := r.Whole().Refs(ctx, RefOptions{Place: prefix, plain: true})
	if err != nil || len(refs) == 0 {
		return "", err
	}
	sum := sha256.New()
	for _, ref := range refs {
		_, _ = io.WriteString(sum, ref.Name+" "+string(ref.ID)+"\n")
	}
	return string(sum.Sum(nil)), nil
}
