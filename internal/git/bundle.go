package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"svc/internal/git/pack"
	"svc/internal/git/pktline"
)

// bundleHead is the first line of a bundle (gitformat-bundle(5)).
const bundleHead = "# v2 git bundle"

// ErrBundle says that a file is no bundle that can be taken.
var ErrBundle = errors.New("not a whole git bundle")

// Bundle writes the branches and tags of a repository, with all that they lead
// to, as a file that git can clone from. It returns ErrNotFound for a
// repository without any; then nothing was written. After another error what
// was written is no bundle.
func (r Repo) Bundle(ctx context.Context, w io.Writer) error {
	refs, err := r.bundled(ctx)
	if err != nil {
		return err
	}
	return r.writeBundle(ctx, w, refs, upkeep)
}

// writeBundle writes refs and what they lead to. The same objects make the
// same bytes, as one thread packs them.
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

// bundled are the refs that go into a bundle.
func (r Repo) bundled(ctx context.Context) ([]Ref, error) {
	var list []Ref
	for _, place := range []string{Heads, Tags} {
		refs, err := r.Refs(ctx, RefOptions{Place: place, plain: true})
		if err != nil {
			return nil, err
		}
		list = append(list, refs...)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("bundle: there are no branches: %w", ErrNotFound)
	}
	return list, nil
}

// Unbundle takes all that is in a bundle into a repository that has no branches
// yet, checked as a push is: all of it, or nothing. It returns ErrBundle for a
// file that is none, that lacks something, or that holds what cannot be taken,
// such as an object of more than maxObject bytes; 0 is no limit.
func (r Repo) Unbundle(ctx context.Context, in io.Reader, maxObject int64) error {
	buffered := bufio.NewReaderSize(in, 64<<10)
	changes, err := readBundle(buffered)
	if err != nil {
		return err
	}
	p := &receiver{repo: r, o: PushOptions{MaxObject: maxObject}, out: &lockedWriter{w: io.Discard}, request: &request{changes: changes, capabilities: map[string]bool{"atomic": true}}}
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

// readBundle reads what stands before the pack of a bundle.
func readBundle(in *bufio.Reader) ([]*RefChange, error) {
	const longest = 4 << 10 // bytes of a line
	line := func() (string, error) {
		text, err := in.ReadSlice('\n')
		if err != nil || len(text) > longest {
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
		case !ok || id == ZeroOID || len(changes) == maxChanges:
			return nil, fmt.Errorf("%w: line %d of its head", ErrBundle, len(changes)+2)
		case ref == "HEAD": // which branch that is, it does not say
		case !strings.HasPrefix(ref, Heads) && !strings.HasPrefix(ref, Tags):
			return nil, fmt.Errorf("%w: %.100q is no branch and no tag", ErrBundle, ref)
		default:
			changes = append(changes, &RefChange{Ref: ref, Old: ZeroOID, New: id})
		}
	}
	if len(changes) == 0 {
		return nil, fmt.Errorf("%w: it has no branches", ErrBundle)
	}
	return changes, nil
}
