package git

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"svc/internal/git/pktline"
)

// In version 2 of the protocol a client sends requests that stand alone, over
// SSH one after the other (gitprotocol-v2(5)). They are read here and each is
// answered by its own process, so that what a client may ask for is checked,
// and answers that many clients want are made once.

// inquiry is a request of version 2.
type inquiry struct {
	command string
	args    []string
	raw     []byte // as it was sent
}

// maxInquiry bounds what is held of a request; it is room for 300,000 refs.
const maxInquiry = 16 << 20

// writeCapabilities writes the capabilities that we support. Others of git are not
// for clients: object-info would reveal objects that they cannot fetch.
func writeCapabilities(out io.Writer) error {
	var b []byte
	for _, line := range []string{"version 2", "agent=git/svc", "ls-refs=unborn", "fetch=shallow wait-for-done filter", "server-option", "object-format=sha1"} {
		b = pktline.Append(b, line+"\n")
	}
	_, err := out.Write(pktline.AppendFlush(b))
	flush(out)
	return err
}

// answerInquiries serves a client of version 2.
func (r Repo) answerInquiries(ctx context.Context, in io.Reader, out io.Writer, o ServeOptions) error {
	if err := r.refs.Exists(); err != nil {
		return err
	}
	buffered := bufio.NewReaderSize(in, 64<<10)
	if o.Stateless {
		q, err := readInquiry(buffered)
		if err != nil || q == nil {
			return refuseInquiry(out, err)
		}
		return r.answer(ctx, q, out, o)
	}
	if err := writeCapabilities(out); err != nil {
		return err
	}
	type read struct {
		q   *inquiry
		err error
	}
	next := make(chan read)
	ended := make(chan struct{})
	defer close(ended)
	go func() { // a client that says nothing must not hold us when ctx ends
		for {
			q, err := readInquiry(buffered)
			select {
			case next <- read{q, err}:
			case <-ended:
				return
			}
			if err != nil || q == nil {
				return
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case n := <-next:
			if n.err != nil || n.q == nil {
				return refuseInquiry(out, n.err)
			}
			if err := r.answer(ctx, n.q, out, o); err != nil {
				return err
			}
		}
	}
}

// refuseInquiry sends the client the error that its request was not understood.
func refuseInquiry(out io.Writer, err error) error {
	if err == nil {
		return nil
	}
	_, _ = out.Write(pktline.Append(nil, "ERR "+pktline.ErrMalformed.Error()+"\n")) // the other side may be gone
	return fmt.Errorf("serve fetch: %w", err)
}

// readInquiry reads a request. It is nil when the client has no more.
func readInquiry(in io.Reader) (*inquiry, error) {
	q := &inquiry{}
	parts := 0
	for {
		data, kind, err := pktline.Read(in)
		switch {
		case err == io.EOF && len(q.raw) == 0, err == nil && kind == pktline.Flush && len(q.raw) == 0:
			return nil, nil
		case err == io.EOF:
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, err
		case len(q.raw)+len(data) > maxInquiry:
			return nil, fmt.Errorf("%w: the request: %w", pktline.ErrMalformed, ErrTooLarge)
		}
		switch kind {
		case pktline.Flush:
			q.raw = pktline.AppendFlush(q.raw)
			return q, nil
		case pktline.Delim:
			q.raw = append(q.raw, "0001"...)
			parts++
		case pktline.Data:
			q.raw = pktline.Append(q.raw, string(data))
			line := strings.TrimSuffix(string(data), "\n")
			if name, ok := strings.CutPrefix(line, "command="); ok && parts == 0 {
				q.command = name
			} else if parts > 0 {
				q.args = append(q.args, line)
			}
		default:
			return nil, fmt.Errorf("%w: in a request", pktline.ErrMalformed)
		}
	}
}

// answer answers one request.
func (r Repo) answer(ctx context.Context, q *inquiry, out io.Writer, o ServeOptions) error {
	o.Stateless = true
	process := func(ctx context.Context, out io.Writer) error { return r.upload(ctx, bytes.NewReader(q.raw), out, o) }
	switch q.command {
	case "ls-refs":
		return process(ctx, out)
	case "fetch":
	default:
		_, err := out.Write(pktline.Append(nil, fmt.Sprintf("ERR unknown command %.50q\n", q.command)))
		return err
	}
	wants, err := r.checkWants(ctx, q, o)
	var unknown *unknownWant
	if errors.As(err, &unknown) {
		_, err = out.Write(pktline.Append(nil, "ERR upload-pack: not our ref "+string(unknown.id)+"\n"))
		return err
	}
	if err != nil {
		return err
	}
	key, shared := q.key(wants)
	if !shared {
		return process(ctx, out)
	}
	err = r.engine.spool.Serve(ctx, r.scope(), r.scope()+"\x00"+key, out, func(ctx context.Context, w io.Writer) error {
		p := &wholePackets{w: w}
		return errors.Join(r.runUpload(ctx, bytes.NewReader(q.raw), p, o), p.end())
	})
	// Where there was no slot nothing was sent, and the caller can still say so.
	if err != nil && ctx.Err() == nil && !errors.Is(err, ErrBusy) {
		// The process may have died without a word, perhaps of another client's making.
		// Where out is what failed, no one reads this.
		_, _ = pktline.Band{W: out, Channel: 3}.Write([]byte("the pack could not be created\n"))
	}
	return err
}

// key names the answer to a fetch, if it is one that others may want and that
// never changes: one without haves, by which clients differ, and without names
// of refs. Tags come along by themselves, so those that there are count.
func (q *inquiry) key(visible *tips) (string, bool) {
	args := slices.Clone(q.args)
	slices.Sort(args)
	args = slices.Compact(args)
	sum := sha256.New()
	done := false
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, " ")
		switch name {
		case "done":
			done = true
		case "want", "shallow", "deepen", "deepen-since", "deepen-relative", "thin-pack", "no-progress", "ofs-delta":
		case "filter":
			if strings.Contains(value, "sparse") {
				return "", false // it may name a file in a branch
			}
		case "include-tag":
			for _, tag := range visible.tags {
				fmt.Fprintf(sum, "tag %s\n", tag)
			}
		default:
			return "", false
		}
		fmt.Fprintf(sum, "%q\n", arg)
	}
	return "fetch " + hex.EncodeToString(sum.Sum(nil)), done
}

// wholePackets passes on packets only when they are whole, so that another can
// follow when what makes them breaks off.
type wholePackets struct {
	w    io.Writer
	rest []byte
}

func (p *wholePackets) Write(b []byte) (int, error) {
	p.rest = append(p.rest, b...)
	whole := 0
	for {
		n, err := pktline.Length(p.rest[whole:])
		if err != nil {
			return 0, err
		}
		if n == 0 || whole+n > len(p.rest) {
			break
		}
		whole += n
	}
	if whole == 0 {
		return len(b), nil
	}
	if _, err := p.w.Write(p.rest[:whole]); err != nil {
		return 0, err
	}
	p.rest = append(p.rest[:0], p.rest[whole:]...)
	return len(b), nil
}

// end says whether the last packet was whole.
func (p *wholePackets) end() error {
	if len(p.rest) > 0 {
		return io.ErrUnexpectedEOF
	}
	return nil
}
