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

// unpackLimit is the number of objects below which a pack is unpacked, as in git:
// many small packs cost more than loose objects.
const unpackLimit = 100

// leniency are the faults that are common in old histories and harmless. All other
// fsck errors are refused.
const leniency = "missingspacebeforedate=ignore,badtimezone=ignore,zeropaddedfilemode=ignore,missingemail=ignore"

// unpack reads the pack of a push into the quarantine.
func (p *receiver) unpack(ctx context.Context, q *quarantine, in io.Reader) error {
	client := &steady{in: in}
	buffered := bufio.NewReaderSize(client, 64<<10)
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
	client.begun = true
	args := []string{"unpack-objects", "-q", "--strict=" + leniency}
	// The index of a pack lists the objects that the client sent.
	if count := binary.BigEndian.Uint32(head[8:]); count >= unpackLimit || count > 0 && p.unseen != nil {
		args = []string{"index-pack", "--stdin", "--fix-thin", "--strict=" + leniency}
	}
	if p.o.MaxSize > 0 {
		args = append(args, "--max-input-size="+strconv.FormatInt(p.o.MaxSize, 10))
	}
	running, end := context.WithCancel(ctx) // ends when git has exited
	defer end()
	f, err := p.feed(running, buffered)
	if err != nil {
		return err
	}
	err = p.repo.run(ctx, command{work: transfer, args: args, env: q.env(), in: f.file}, func(out io.Reader) error {
		_, err := io.Copy(io.Discard, out) // index-pack prints the name of the pack
		return err
	})
	f.stop()
	if refused := f.refusal(); err != nil && refused != nil && ctx.Err() == nil {
		err = refused
	}
	end()
	if p.o.Stateless || p.unseen != nil || p.filters() && err == nil {
		// An HTTP client reads the answer only after sending everything. Git may finish
		// before the filter, whose results are needed.
		select {
		case <-f.ended:
		case <-ctx.Done():
		}
	}
	return err
}

// feed copies the pack to git and checks the sizes of its objects. A large pack
// waits for a slot and holds it until ctx ends. It already has a transfer slot;
// this cannot deadlock, because no one who holds a large slot waits for a transfer
// slot.
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

// filters reports whether the pack is parsed on its way to git. Such a feed ends
// with the pack, even if the client keeps the connection open.
func (p *receiver) filters() bool { return p.o.MaxObject > 0 || p.unseen != nil || p.o.Progress != nil }

// unpackFailure returns a one-line reason for the client, and prints git's
// messages in the user's terminal.
func (p *receiver) unpackFailure(err error) string {
	var failed *Error
	switch {
	case errs.Is(err, errs.KindUnavailable):
		return reason(err, "")
	case errors.Is(err, errSlow):
		return errSlow.Error()
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
