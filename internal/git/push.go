package git

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"svc/internal/git/pktline"
)

// RefChange is what a push wants to do to one ref.
type RefChange struct {
	Ref string
	Old OID // ZeroOID when it is to be made
	New OID // ZeroOID when it is to be deleted
	// Refused is why it is not done, in words for the user; empty if it is.
	Refused string
}

// Push is a push that is under way.
type Push struct {
	// Repo sees the new objects, though they are in no repository yet. It
	// may be used until Check returns.
	Repo    Repo
	Changes []*RefChange
	Options []string // what the user sent with -o
	Atomic  bool     // all changes are done, or none
	// Mark is by which Repo.Happened finds the updates; Check may set it.
	Mark string
	// Pointers reports that the pack may have LFS pointers.
	Pointers bool

	screen io.Writer
}

// Say shows text in the user's terminal, if the client can.
func (p *Push) Say(format string, args ...any) {
	text := strings.TrimSuffix(fmt.Sprintf(format, args...), "\n") + "\n"
	if p.screen != nil {
		_, _ = io.WriteString(p.screen, text) // that the client is gone is noticed elsewhere
	}
}

// PushOptions says how a push is received.
type PushOptions struct {
	ServeOptions
	MaxSize int64 // bytes of the pack; 0 is no limit
	// Options are those of a push without a client: see TakePack.
	Options []string
	// Progress is called with the number of objects that were read of a pack, and
	// of all of them. It must be quick, and may be nil.
	Progress func(done, total uint32)
	// MaxObject is the most bytes of one object; 0 is no limit. It is checked
	// before git sees the object.
	MaxObject int64
	// Unseen holds the prefixes of refs that the client does not see. What only
	// they lead to cannot become a part of a branch, unless the client sends it.
	Unseen []string
	// Check is asked before anything becomes visible. It sets Refused in the
	// changes that may not be; an error refuses all of them and is returned
	// by ReceivePack, its text is not shown.
	Check func(context.Context, *Push) error
	// Done is called with the changes that were made, which are durable by then,
	// before the client gets the result. Its error is returned by ReceivePack;
	// the refs have moved nevertheless.
	Done func(context.Context, *Push) error
}

const (
	maxChanges     = 20_000 // refs in one push
	maxPushOptions = 100
	maxOption      = 4096 // bytes
)

// AdvertiseReceive answers a client that wants to push over HTTP (GET
// info/refs).
func (r Repo) AdvertiseReceive(ctx context.Context, out io.Writer, o PushOptions) error {
	w := bufio.NewWriterSize(out, 64<<10)
	if err := writeService(w, "git-receive-pack"); err != nil {
		return err
	}
	if err := r.advertise(ctx, w, o); err != nil {
		return err
	}
	return w.Flush()
}

// advertise writes the refs and what we can do. Version 2 of the protocol has
// no pushes; a client that asks for it gets version 0.
func (r Repo) advertise(ctx context.Context, w io.Writer, o PushOptions) error {
	refs, err := r.Refs(ctx, RefOptions{plain: true})
	if err != nil {
		return err
	}
	var b []byte
	if o.version() == "1" {
		b = pktline.Append(b, "version 1\n")
	}
	capabilities := "report-status report-status-v2 delete-refs side-band-64k quiet atomic ofs-delta push-options object-format=sha1 agent=git/svc"
	first := "\x00" + capabilities
	for _, ref := range refs {
		if o.hidden(ref.Name) {
			continue
		}
		b = pktline.Append(b, string(ref.ID)+" "+ref.Name+first+"\n")
		first = ""
	}
	if first != "" {
		b = pktline.Append(b, string(ZeroOID)+" capabilities^{}"+first+"\n")
	}
	_, err = w.Write(pktline.AppendFlush(b))
	return err
}

func (o ServeOptions) hidden(ref string) bool { return below(ref, o.Hide) }

// request is what a client wants.
type request struct {
	changes      []*RefChange
	options      []string
	capabilities map[string]bool
}

// readRequest reads the commands of a push, up to the pack. It is nil when the
// client wants nothing.
func readRequest(in io.Reader) (*request, error) {
	q := &request{capabilities: map[string]bool{}}
	for {
		line, kind, err := pktline.ReadLine(in)
		if err == io.EOF && len(q.changes) == 0 {
			return nil, nil // it has looked at the refs and left
		}
		if err != nil {
			return nil, err
		}
		if kind == pktline.Flush {
			break
		}
		if kind != pktline.Data || len(q.changes) == maxChanges {
			return nil, fmt.Errorf("%w: command %d", pktline.ErrMalformed, len(q.changes)+1)
		}
		if id, ok := strings.CutPrefix(line, "shallow "); ok {
			// Whether the history is whole here is checked with the objects.
			if _, ok := ParseOID(id); ok {
				continue
			}
		}
		if err := q.add(line); err != nil {
			return nil, err
		}
	}
	if len(q.changes) == 0 {
		return nil, nil
	}
	if q.capabilities["push-options"] {
		if err := q.readOptions(in); err != nil {
			return nil, err
		}
	}
	return q, nil
}

// add reads "<old> <new> <ref>", the first with capabilities behind a NUL.
func (q *request) add(line string) error {
	line, list, found := strings.Cut(line, "\x00")
	if found && len(q.changes) == 0 {
		for c := range strings.FieldsSeq(list) {
			if format, ok := strings.CutPrefix(c, "object-format="); ok && format != "sha1" {
				return fmt.Errorf("%w: object format %.20q", pktline.ErrMalformed, format)
			}
			q.capabilities[c] = true
		}
	}
	field := strings.SplitN(line, " ", 3)
	if len(field) != 3 {
		return fmt.Errorf("%w: command %.100q", pktline.ErrMalformed, line)
	}
	before, ok := ParseOID(field[0])
	after, also := ParseOID(field[1])
	if !ok || !also {
		return fmt.Errorf("%w: command %.100q", pktline.ErrMalformed, line)
	}
	q.changes = append(q.changes, &RefChange{Ref: field[2], Old: before, New: after})
	return nil
}

func (q *request) readOptions(in io.Reader) error {
	for {
		line, kind, err := pktline.ReadLine(in)
		if err != nil {
			return err
		}
		if kind == pktline.Flush {
			return nil
		}
		if kind != pktline.Data || len(line) > maxOption || len(q.options) == maxPushOptions {
			return fmt.Errorf("%w: push option %d", pktline.ErrMalformed, len(q.options)+1)
		}
		q.options = append(q.options, line)
	}
}

// sendsPack reports whether a pack follows: not when refs are only deleted.
func (q *request) sendsPack() bool {
	return slices.ContainsFunc(q.changes, func(c *RefChange) bool { return c.New != ZeroOID })
}
