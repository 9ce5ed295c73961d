package gitremote

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"svc/internal/git"
	"svc/internal/git/pktline"
)

const receivePack = "git-receive-pack"

// Command is the update of a ref of a remote.
type Command struct {
	Ref string
	Old git.OID // git.ZeroOID if the ref is created
	New git.OID // git.ZeroOID if it is deleted
	// Refused is the server's message if it rejected the update; empty otherwise.
	Refused string
}

// PushRefs lists the branches and tags of the destination of a push.
func (r *Remote) PushRefs(ctx context.Context) (*Refs, error) {
	refs, err := r.refs(ctx, receivePack)
	if err == nil && refs.v2 {
		return nil, malformed()
	}
	return refs, err
}

// Push updates refs, each independently, and sets Refused in rejected commands. refs
// is the result of PushRefs. pack writes a pack with the new objects that the server
// does not have; it is not called if all commands delete refs.
func (r *Remote) Push(ctx context.Context, refs *Refs, commands []*Command, pack func(ctx context.Context, w io.Writer) error) error {
	if !refs.capabilities["report-status"] {
		return fail("The server does not report the result of a push.")
	}
	chosen := []string{"report-status"}
	for _, name := range []string{"side-band-64k", "ofs-delta", "delete-refs", "quiet"} {
		if refs.capabilities[name] {
			chosen = append(chosen, name)
		}
	}
	first := "\x00 " + strings.Join(append(chosen, "agent=git/svc"), " ")
	var head []byte
	sends := false
	for _, c := range commands {
		if c.New == git.ZeroOID && !refs.capabilities["delete-refs"] {
			c.Refused = "the server does not allow deletions"
			continue
		}
		sends = sends || c.New != git.ZeroOID
		head = pktline.Append(head, string(c.Old)+" "+string(c.New)+" "+c.Ref+first+"\n")
		first = ""
	}
	if len(head) == 0 {
		return nil
	}
	head = pktline.AppendFlush(head)
	whole := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	produced := make(chan error, 1)
	produce := func(w io.Writer) {
		_, err := w.Write(head)
		if err == nil && sends {
			err = pack(ctx, w)
		}
		produced <- err
		if p, ok := w.(*io.PipeWriter); ok {
			_ = p.CloseWithError(err)
		}
	}
	body, done, err := r.sendPush(ctx, produce)
	if err == nil {
		err = r.readReport(ctx, body, done, refs.capabilities["side-band-64k"], commands)
	}
	cancel()
	own := <-produced
	if err == nil || own == nil || errors.Is(own, io.ErrClosedPipe) || isNetwork(own) || whole.Err() == nil && errors.Is(own, context.Canceled) {
		return err
	}
	return own // a local error is the cause of the server's error
}

// sendPush sends a push, and returns the response.
func (r *Remote) sendPush(ctx context.Context, produce func(io.Writer)) (body io.Reader, done func(), err error) {
	if r.streams() {
		go produce(streamWriter{r.stream.out})
		return r.stream.in, func() { _ = r.stream.Close() }, nil
	}
	in, out := io.Pipe()
	go produce(out)
	answer, err := r.post(ctx, receivePack, in)
	if err != nil {
		in.CloseWithError(io.ErrClosedPipe) // ends the producer
		return nil, nil, err
	}
	return bufio.NewReaderSize(answer.Body, 64<<10), func() {
		answer.Body.Close()
		in.CloseWithError(io.ErrClosedPipe)
	}, nil
}

// networkError is an error of writing to a connection.
type networkError struct{ error }

func (e networkError) Unwrap() error { return e.error }

func isNetwork(err error) bool {
	var n networkError
	return errors.As(err, &n)
}

// streamWriter wraps the errors of a connection in networkError.
type streamWriter struct{ w io.Writer }

// Write implements io.Writer.
func (s streamWriter) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	if err != nil {
		err = networkError{err}
	}
	return n, err
}

const (
	// maxReport is the maximum size of the result of a push, in bytes.
	maxReport = 16 << 20
	// reportTime is the time limit for the result of a push: the server indexes the
	// pack and runs its hooks meanwhile.
	reportTime = 30 * time.Minute
)

// readReport reads the result of a push (report-status), and calls done.
func (r *Remote) readReport(ctx context.Context, in io.Reader, done func(), banded bool, commands []*Command) error {
	late := time.AfterFunc(reportTime, done)
	err := readReport(ctx, in, banded, commands)
	if !late.Stop() && err != nil && ctx.Err() == nil {
		return &Failure{Text: fmt.Sprintf("The server did not report the result of the push within %s.", reportTime), Temporary: true, cause: err}
	}
	done()
	return err
}

func readReport(ctx context.Context, in io.Reader, banded bool, commands []*Command) error {
	if banded {
		in = &packReader{ctx: ctx, in: in}
	}
	in = &limited{in: in, left: maxReport, text: "The server's report of the push is too long."}
	open := map[string]*Command{}
	for _, c := range commands {
		if c.Refused == "" {
			open[c.Ref] = c
		}
	}
	settle := func(ref, why string) {
		if c := open[ref]; c != nil {
			c.Refused = why
			delete(open, ref)
		}
	}
	unpacked := false
	for {
		line, kind, err := pktline.ReadLine(in)
		if err != nil && !(err == io.EOF && unpacked) {
			return broken(ctx, err)
		}
		if err == io.EOF || kind != pktline.Data {
			break
		}
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "unpack":
			if rest != "ok" {
				return &Failure{Text: "The server could not read the objects of the push.", cause: errors.New(rest)}
			}
			unpacked = true
		case "ok":
			settle(rest, "")
		case "ng":
			name, why, _ := strings.Cut(rest, " ")
			settle(name, cmp.Or(why, "refused"))
		case "ERR":
			return said(line)
		}
	}
	for _, c := range open {
		c.Refused = "the server did not report a result"
	}
	return nil
}
