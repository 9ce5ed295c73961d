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

// RefChange is the change of one ref in a push.
type RefChange struct {
	Ref string
	Old OID // ZeroOID to create the ref
	New OID // ZeroOID to delete the ref
	// Refused is the reason why the change is refused, for the user; empty if it is
	// accepted.
	Refused string
}

// Push is a push in progress.
type Push struct {
	// Repo sees the new objects in the quarantine. It may be used until Check returns.
	Repo    Repo
	Changes []*RefChange
	Options []string // push options (git push -o)
	Atomic  bool     // either all changes are made or none
	// Mark identifies the ref updates for Repo.Happened. Check may set it.
	Mark string
	// Pointers reports that the pack may contain LFS pointers.
	Pointers bool

	screen io.Writer
}

// Say prints text in the user's terminal, if the client supports it.
func (p *Push) Say(format string, args ...any) {
	text := strings.TrimSuffix(fmt.Sprintf(format, args...), "\n") + "\n"
	if p.screen != nil {
		_, _ = io.WriteString(p.screen, text) // a lost connection is noticed elsewhere
	}
}

// PushOptions are the options of ReceivePack.
type PushOptions struct {
	ServeOptions
	MaxSize int64 // maximum size of the pack in bytes; 0 means no limit
	// Options are the push options of TakePack, which has no client.
	Options []string
	// Separate has TakePack make each change on its own.
	Separate bool
	// Progress is called with the number of objects received and their total. It must
	// be fast; may be nil.
	Progress func(done, total uint32)
	// MaxObject is the maximum size of an object in bytes; 0 means no limit. It is
	// checked before git reads the object.
	MaxObject int64
	// Unseen are the prefixes of refs that the client cannot see. Objects reachable
	// only from them cannot become part of a branch unless the client sends them.
	Unseen []string
	// Check is called before the changes become visible. It sets Refused in changes
	// that are not allowed. An error refuses all changes and is returned by
	// ReceivePack, but not shown to the user.
	Check func(context.Context, *Push) error
	// Update, if set, updates refs in place of Repo.UpdateRefsAs, with the same errors. It
	// gets the accepted changes, or, after a conflict, one of them.
	Update func(ctx context.Context, push *Push, updates []Update) error
	// Done is called with the changes that were made and are durable, before the
	// client gets the result. Its error is returned by ReceivePack; the refs have been
	// updated nevertheless.
	Done func(context.Context, *Push) error
}

const (
	maxChanges     = 20_000   // number of refs in a push
	maxNames       = 32 << 20 // bytes of their names; more than the longest names take
	maxPushOptions = 100
	maxOption      = 4096 // length in bytes
)

// AdvertiseReceive answers GET info/refs for a push over HTTP.
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

// advertise writes the refs and capabilities. Protocol version 2 does not support
// pushes; a client that requests it gets version 0.
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

// request is the request of a client.
type request struct {
	changes      []*RefChange
	size         int // of the names of the changes
	options      []string
	capabilities map[string]bool
}

// readRequest reads the commands of a push, up to the pack. It returns nil if
// there are none.
func readRequest(in io.Reader) (*request, error) {
	q := &request{capabilities: map[string]bool{}}
	for shallow := 0; ; {
		line, kind, err := pktline.ReadLine(in)
		if err == io.EOF && len(q.changes) == 0 {
			return nil, nil // the client only listed the refs
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
			// Completeness of the history is checked with the objects.
			if _, ok := ParseOID(id); ok && shallow < maxChanges {
				shallow++
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

// add parses "<old> <new> <ref>". The first line has capabilities after a NUL.
func (q *request) add(line string) error {
	line, list, found := strings.Cut(line, "\x00")
	if found && len(q.changes) == 0 {
		for c := range strings.FieldsSeq(list) {
			if format, beforeOK := strings.CutPrefix(c, "object-format="); beforeOK && format != "sha1" {
				return fmt.Errorf("%w: object format %.20q", pktline.ErrMalformed, format)
			}
			q.capabilities[c] = true
		}
	}
	fields := strings.SplitN(line, " ", 3)
	if len(fields) != 3 {
		return fmt.Errorf("%w: command %.100q", pktline.ErrMalformed, line)
	}
	before, beforeOK := ParseOID(fields[0])
	after, afterOK := ParseOID(fields[1])
	q.size += len(fields[2])
	if !beforeOK || !afterOK || q.size > maxNames {
		return fmt.Errorf("%w: command %.100q", pktline.ErrMalformed, line)
	}
	// Cloned, so that the line is not kept: it can be much longer in the first command.
	q.changes = append(q.changes, &RefChange{Ref: strings.Clone(fields[2]), Old: OID(strings.Clone(string(before))), New: OID(strings.Clone(string(after)))})
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

// sendsPack reports whether a pack follows. That is not the case if refs are only
// deleted.
func (q *request) sendsPack() bool {
	return slices.ContainsFunc(q.changes, func(c *RefChange) bool { return c.New != ZeroOID })
}
