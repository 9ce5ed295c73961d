package git

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"svc/internal/errs"
	"svc/internal/git/pack"
	"svc/internal/git/pktline"
)

// unpackLimit is the number of objects below which a pack is taken apart, as
// git does: many tiny packs cost more than some files.
const unpackLimit = 100

// leniency names faults that old tools left in many histories and that do no
// harm; all else that fsck calls an error is refused.
const leniency = "missingspacebeforedate=ignore,badtimezone=ignore,zeropaddedfilemode=ignore,missingemail=ignore"

// unpack reads the pack of a push into the quarantine.
func (p *receiver) unpack(ctx context.Context, q *quarantine, in io.Reader) error {
	buffered := bufio.NewReaderSize(in, 64<<10)
	head, err := buffered.Peek(12)
	if err != nil {
		return fmt.Errorf("read pack: %w", err)
	}
	if string(head[:4]) != "PACK" {
		return fmt.Errorf("read pack: %w: it starts with %q", pktline.ErrMalformed, head[:4])
	}
	if p.o.Flows != nil {
		p.o.Flows()
	}
	args := []string{"unpack-objects", "-q", "--strict=" + leniency}
	// The index of a pack says which of its objects the client sent.
	if count := binary.BigEndian.Uint32(head[8:]); count >= unpackLimit || count > 0 && p.unseen != nil {
		args = []string{"index-pack", "--stdin", "--fix-thin", "--strict=" + leniency}
	}
	if p.o.MaxSize > 0 {
		args = append(args, "--max-input-size="+strconv.FormatInt(p.o.MaxSize, 10))
	}
	running, end := context.WithCancel(ctx) // until git has ended
	defer end()
	f, err := p.feed(running, buffered)
	if err != nil {
		return err
	}
	err = p.repo.run(ctx, command{work: transfer, args: args, env: q.env(), in: f.file}, func(out io.Reader) error {
		_, err := io.Copy(io.Discard, out) // the name of the pack
		return err
	})
	f.stop()
	if refused := f.refusal(); err != nil && refused != nil && ctx.Err() == nil {
		err = refused
	}
	end()
	if p.o.Stateless || p.unseen != nil || p.filters() && err == nil {
		// The client reads the answer when it has sent all. What the filter noted of
		// the pack is complete then, which git may have read before.
		select {
		case <-f.ended:
		case <-ctx.Done():
		}
	}
	return err
}

// feed passes the pack on to git, as far as its objects are not too large. A
// large pack waits for a slot, which it holds until ctx ends. It has a slot of
// the transfers by then; nothing that holds the slot of a large pack waits for
// one of those.
func (p *receiver) feed(ctx context.Context, in *bufio.Reader) (*feed, error) {
	if !p.filters() {
		return newFeed(in)
	}
	large := func() error {
		if p.large == nil {
			return nil
		}
		release, err := acquire(ctx, p.large)
		if err == nil {
			context.AfterFunc(ctx, release)
		}
		return err
	}
	return newFilteredFeed(in, func(out io.Writer) error { return p.copyPack(out, in, large) })
}

// filters reports whether the pack is read by its entries on its way to git. Such
// a feed ends with the pack, even if the client keeps its side open.
func (p *receiver) filters() bool { return p.o.MaxObject > 0 || p.unseen != nil || p.o.Progress != nil }

// unpackFailure says in a line why a pack was not taken, and shows what git
// said in the user's terminal.
func (p *receiver) unpackFailure(err error) string {
	var failed *Error
	switch {
	case errs.Is(err, errs.KindUnavailable):
		return reason(err, "")
	case errors.Is(err, pack.ErrObjectSize):
		return fmt.Sprintf("object exceeds the maximum size of %d bytes", p.o.MaxObject)
	case errors.Is(err, pack.ErrTotal):
		return "pack expands to too much data; push fewer commits at a time"
	case errors.Is(err, pack.ErrMalformed):
		return shorten(err.Error())
	case !errors.As(err, &failed):
		return reason(err, "the pack could not be read")
	}
	for line := range strings.Lines(failed.Stderr) {
		if strings.HasPrefix(line, "fatal: ") || strings.HasPrefix(line, "error: ") {
			p.push.Say("%s", strings.ReplaceAll(shorten(line), p.repo.path, "."))
		}
	}
	switch {
	case errors.Is(err, ErrMemory):
		return "object exceeds the memory that git may use"
	case errors.Is(err, ErrTooLarge):
		return fmt.Sprintf("pack exceeds maximum allowed size of %d bytes", p.o.MaxSize)
	case errors.Is(err, ErrTimeout):
		return "it took too long"
	}
	return failed.Name + " abnormal exit"
}
