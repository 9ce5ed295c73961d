package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"svc/internal/git/pack"
	"svc/internal/git/pktline"
)

// bundleHead is the signature of a bundle; see gitformat-bundle(5).
const bundleHead = "# v2 git bundle"

// ErrBundle means that a file is not a valid, complete bundle.
var ErrBundle = errors.New("not a whole git bundle")

// Bundle writes the branches and tags of the repository and all their objects as a
// git bundle. It returns ErrNotFound if there are none; then nothing was written.
// After any other error the output is incomplete.
func (r Repo) Bundle(ctx context.Context, w io.Writer) error {
	return r.BundleRefs(ctx, w, []string{Heads, Tags}, func(string) bool { return true })
}

// BundleRefs is Bundle for the refs below prefixes that keep accepts.
func (r Repo) BundleRefs(ctx context.Context, w io.Writer, prefixes []string, keep func(ref string) bool) error {
	refs, err := r.bundleRefs(ctx, prefixes, keep)
	if err != nil {
		return err
	}
	return r.writeBundle(ctx, w, refs, upkeep)
}

// writeBundle writes refs and all reachable objects. It packs with one thread, so
// that the same objects give the same bytes.
func (r Repo) writeBundle(ctx context.Context, w io.Writer, refs []Ref, kind work) error {
	out := bufio.NewWriterSize(w, 64<<10)
	fmt.Fprintln(out, bundleHead)
	var ids strings.Builder
	for _, ref := range refs {
		fmt.Fprintf(out, "%s %s\n", ref.ID, ref.Name)
		ids.WriteString(string(ref.ID) + "\n")
	}
	fmt.Fprintln(out)
	c := command{work: kind, in: strings.NewReader(ids.String()),
		args: []string{"-c", "pack.threads=1", "pack-objects", "-q", "--revs", "--delta-base-offset", "--stdout"}}
	err := r.run(ctx, c, func(pack io.Reader) error {
		_, err := io.Copy(out, pack)
		return err
	})
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	return nil
}

// bundleRefs returns the refs that go into a bundle.
func (r Repo) bundleRefs(ctx context.Context, prefixes []string, keep func(ref string) bool) ([]Ref, error) {
	var list []Ref
	for _, prefix := range prefixes {
		refs, err := r.Refs(ctx, RefOptions{Place: prefix, plain: true})
		if err != nil {
			return nil, err
		}
		list = append(list, slices.DeleteFunc(refs, func(ref Ref) bool { return !keep(ref.Name) })...)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("bundle: there are no branches: %w", ErrNotFound)
	}
	if len(list) > maxUnbundled {
		return nil, fmt.Errorf("bundle: %d refs: %w", len(list), ErrTooLarge)
	}
	return list, nil
}

// maxUnbundled is the maximum number of refs in a bundle that Unbundle reads.
const maxUnbundled = 200_000

// BundleLimits are the limits of a bundle in bytes; 0 means no limit.
type BundleLimits struct {
	Pack   int64 // of all objects, as they are compressed
	Object int64 // of each object
}

// Unbundle imports a bundle into a repository without branches. Its objects are
// checked like those of a push; either everything is imported or nothing. It
// returns ErrBundle for a file that is not a bundle, is incomplete, or contains
// something that is refused, such as a pack or an object that exceeds a limit.
func (r Repo) Unbundle(ctx context.Context, in io.Reader, limits BundleLimits) error {
	return r.UnbundleRefs(ctx, in, limits, func(c *RefChange) string {
		if !strings.HasPrefix(c.Ref, Heads) && !strings.HasPrefix(c.Ref, Tags) {
			return "is no branch and no tag"
		}
		return ""
	})
}

// UnbundleRefs is Unbundle for a bundle that may have other refs. refuse returns why a
// ref is not taken, or an empty string.
func (r Repo) UnbundleRefs(ctx context.Context, in io.Reader, limits BundleLimits, refuse func(*RefChange) string) error {
	buffered := bufio.NewReaderSize(in, 64<<10)
	changes, err := readBundle(buffered, refuse)
	if err != nil {
		return err
	}
	p := &receiver{repo: r, o: PushOptions{MaxSize: limits.Pack, MaxObject: limits.Object}, out: &lockedWriter{w: io.Discard}, request: &request{changes: changes, capabilities: map[string]bool{"atomic": true}}}
	push, err := p.receive(ctx, buffered)
	failure, own := errors.AsType[*Error](err)
	switch {
	case own && failure.Exit > 0 && ctx.Err() == nil:
		return fmt.Errorf("%w: %w", ErrBundle, err)
	case errors.Is(err, pktline.ErrMalformed), errors.Is(err, pack.ErrMalformed), errors.Is(err, ErrTooLarge), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: %w", ErrBundle, err)
	case err != nil:
		return fmt.Errorf("unbundle: %w", err)
	}
	for _, c := range push.Changes {
		if c.Refused != "" {
			return fmt.Errorf("%w: %.100q: %s", ErrBundle, c.Ref, c.Refused)
		}
	}
	return nil
}

// readBundle parses the header of a bundle.
func readBundle(in *bufio.Reader, refuse func(*RefChange) string) ([]*RefChange, error) {
	const maxLine = 4 << 10 // maximum line length in bytes
	line := func() (string, error) {
		text, err := in.ReadSlice('\n')
		if err != nil || len(text) > maxLine {
			return "", fmt.Errorf("%w: its head breaks off", ErrBundle)
		}
		return string(text[:len(text)-1]), nil
	}
	first, err := line()
	if err != nil {
		return nil, err
	}
	if first != bundleHead {
		return nil, fmt.Errorf("%w: it starts with %.30q", ErrBundle, first)
	}
	var changes []*RefChange
	for {
		text, err := line()
		if err != nil {
			return nil, err
		}
		if text == "" {
			break
		}
		name, ref, _ := strings.Cut(text, " ")
		id, ok := ParseOID(name)
		switch {
		case strings.HasPrefix(text, "-"):
			return nil, fmt.Errorf("%w: it needs objects that it does not hold", ErrBundle)
		case !ok || id == ZeroOID || len(changes) == maxUnbundled:
			return nil, fmt.Errorf("%w: line %d of its head", ErrBundle, len(changes)+2)
		case ref == "HEAD": // the header does not say which branch HEAD is
		default:
			c := &RefChange{Ref: ref, Old: ZeroOID, New: id}
			if why := refuse(c); why != "" {
				return nil, fmt.Errorf("%w: %.100q: %s", ErrBundle, ref, why)
			}
			changes = append(changes, c)
		}
	}
	if len(changes) == 0 {
		return nil, fmt.Errorf("%w: it has no branches", ErrBundle)
	}
	return changes, nil
}
