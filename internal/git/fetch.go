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

	"svc/internal/errs"
	"svc/internal/git/pktline"
)

// In protocol version 2 a client sends independent requests, over SSH one after
// the other (see gitprotocol-v2(5)). They are parsed here, and each is answered by
// its own process. This makes it possible to check what a client may fetch, and to
// share answers between clients.

// inquiry is a request of protocol version 2.
type inquiry struct {
	command string
	args    []string
	raw     []byte // the request as received
}

// maxInquiry is the maximum size of a request in bytes, enough for 300,000 refs.
const maxInquiry = 16 << 20

// writeCapabilities advertises the supported capabilities. object-info is not
// supported: it would reveal objects that the client cannot fetch.
func writeCapabilities(out io.Writer) error {
	var b []byte
	for _, line := range []string{"version 2", "agent=git/svc", "ls-refs=unborn", "fetch=shallow wait-for-done filter", "server-option", "object-format=sha1"} {
		b = pktline.Append(b, line+"\n")
	}
	_, err := out.Write(pktline.AppendFlush(b))
	flush(out)
	return err
}

// answerInquiries serves a client of protocol version 2.
func (r Repo) answerInquiries(ctx context.Context, in io.Reader, out io.Writer, o ServeOptions) error {
	if err := r.refs.Exists(ctx); err != nil {
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
	go func() { // a goroutine, so that an idle client does not block the end of ctx
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
	for first := true; ; first = false {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case n := <-next:
			if n.err != nil || n.q == nil {
				return refuseInquiry(out, n.err)
			}
			if !first && o.Still != nil {
				hide, err := o.Still(ctx)
				if err != nil {
					why := "the server cannot answer now"
					if refusal, ok := errs.As(err); ok {
						why = refusal.Text
					}
					_, _ = out.Write(pktline.Append(nil, "ERR "+shorten(why)+"\n")) // the client may be gone
					return fmt.Errorf("serve fetch: %w", err)
				}
				o.Hide = hide
			}
			if err := r.answer(ctx, n.q, out, o); err != nil {
				return err
			}
		}
	}
}

// refuseInquiry reports a malformed request to the client.
func refuseInquiry(out io.Writer, err error) error {
	if err == nil {
		return nil
	}
	_, _ = out.Write(pktline.Append(nil, "ERR "+pktline.ErrMalformed.Error()+"\n")) // the client may be gone
	return fmt.Errorf("serve fetch: %w", err)
}

// readInquiry reads a request. It returns nil at the end of the input.
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
	// If there was no slot, nothing was sent, and the caller can still report that.
	if err != nil && ctx.Err() == nil && !errors.Is(err, ErrBusy) {
		// The process may have died silently, perhaps for another client that shares it.
		// If writing to out failed, this fails too.
		_, _ = pktline.Band{W: out, Channel: 3}.Write([]byte("the pack could not be created\n"))
	}
	return err
}

// key returns the cache key of the answer to a fetch. It returns false if the
// answer cannot be shared: if the request has haves or ref names. With include-tag
// the visible tags are part of the key.
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
				return "", false // the filter may refer to a file in a branch
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

// wholePackets writes only complete packets, so that an error packet can follow if
// the producer fails.
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

// end returns an error if the last packet is incomplete.
func (p *wholePackets) end() error {
	if len(p.rest) > 0 {
		return io.ErrUnexpectedEOF
	}
	return nil
}
