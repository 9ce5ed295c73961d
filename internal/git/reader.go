package git

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// reader is a long-running git cat-file --batch-command process. It is used by one
// caller at a time.
type reader struct {
	scope  string
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	said   *tail
	reused bool // it has answered before
	since  time.Time
	epoch  int // epoch of the pool when it was started
	// release releases the slot of the current caller.
	release func()
}

// errBroken means that an answer could not be read completely. The reader is not
// reused.
var errBroken = errors.New("the reader of objects broke off")

func (e *Engine) startReader(r Repo) (*reader, error) {
	// The process outlives the request that started it.
	cmd := r.prepare(context.Background(), []string{"cat-file", "--batch-command"}, nil)
	p := &reader{scope: r.scope(), cmd: cmd, said: &tail{}}
	cmd.Stderr = p.said
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := e.start(cmd); err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewReaderSize(out, 32<<10)
	return p, nil
}

// info returns the type and size of an object by any name that git accepts. The
// caller has checked that the name contains no newline.
func (p *reader) info(name string) (Info, error) {
	if _, err := io.WriteString(p.in, "info "+name+"\n"); err != nil {
		return Info{}, fmt.Errorf("%w: %w", errBroken, err)
	}
	return p.header(name)
}

// contents reads the object described by info.
func (p *reader) contents(info Info) (*Object, error) {
	head, err := p.ask(info.OID)
	if err != nil {
		return nil, err
	}
	if head != info {
		return nil, fmt.Errorf("%w: %s has another size or type than before", errBroken, info.OID)
	}
	return p.content(head)
}

// ask requests an object and returns its header. The content follows; see content.
func (p *reader) ask(id OID) (Info, error) {
	if _, err := io.WriteString(p.in, "contents "+string(id)+"\n"); err != nil {
		return Info{}, fmt.Errorf("%w: %w", errBroken, err)
	}
	return p.header(string(id))
}

// content reads the content that follows the header returned by ask.
func (p *reader) content(head Info) (*Object, error) {
	content := make([]byte, head.Size+1) // with the newline that follows
	if _, err := io.ReadFull(p.out, content); err != nil {
		return nil, fmt.Errorf("%w: %w", errBroken, err)
	}
	return &Object{head, content[:head.Size:head.Size]}, nil
}

func (p *reader) header(name string) (Info, error) {
	line, err := p.out.ReadString('\n')
	if err != nil {
		return Info{}, fmt.Errorf("%w: %w", errBroken, err)
	}
	line = strings.TrimSuffix(line, "\n")
	if strings.HasSuffix(line, " missing") {
		return Info{}, fmt.Errorf("object %.100s: %w", name, ErrNotFound)
	}
	if strings.HasSuffix(line, " ambiguous") {
		return Info{}, fmt.Errorf("object %.100s is ambiguous: %w", name, ErrNotFound)
	}
	part := strings.Split(line, " ")
	if len(part) == 3 {
		size, err := strconv.ParseInt(part[2], 10, 64)
		if id, ok := ParseOID(part[0]); ok && err == nil && size >= 0 {
			return Info{OID: id, Type: Type(part[1]), Size: size}, nil
		}
	}
	return Info{}, fmt.Errorf("%w: output %.100q", errBroken, line)
}

// end stops the process and returns the end of its stderr.
func (p *reader) end() string {
	p.in.Close()
	_ = p.cmd.Cancel() // it has no state to save
	_ = p.cmd.Wait()
	return p.said.String()
}

// withReader calls ask with a reader of the repository. If ctx ends or the time
// limit is exceeded, the process is killed and not reused, so that unread output
// of one caller never reaches another. If an idle process turns out to be dead,
// the call is retried with a new one.
func (r Repo) withReader(ctx context.Context, ask func(*reader) error) error {
	defer r.engine.uses.begin(r.dirs())()
	if err := r.present(ctx); err != nil {
		return fmt.Errorf("read objects: %w", err)
	}
	miss := missing{seen: r.changes()}
	for {
		err := r.askReader(ctx, ask)
		if again, failed := r.missed(ctx, err, &miss); !again {
			return cmp.Or(failed, err)
		}
	}
}

// askReader is withReader for a directory that is there.
func (r Repo) askReader(ctx context.Context, ask func(*reader) error) error {
	pool := r.engine.readers
	for {
		p, err := pool.take(ctx, r)
		if err != nil {
			return fmt.Errorf("read objects: %w", err)
		}
		inner, cancel := context.WithTimeoutCause(ctx, r.engine.limits.Read, ErrTimeout)
		stop := context.AfterFunc(inner, func() { _ = p.cmd.Cancel() })
		err = ask(p)
		stopped := stop()
		cause := context.Cause(inner)
		cancel()
		switch {
		case !stopped:
			pool.drop(p)
			return &Error{Kind: cause, Name: "cat-file", Exit: -1}
		case errors.As(err, new(unread)):
			pool.drop(p)
			return err
		case errors.Is(err, errBroken):
			reused := p.reused
			stderr := pool.drop(p)
			if reused {
				continue
			}
			if kind := kindOf(stderr); kind != ErrCommand {
				return &Error{Kind: kind, Name: "cat-file", Exit: -1, Stderr: stderr}
			}
			return &Error{Kind: ErrCorrupt, Name: "cat-file", Exit: -1, Stderr: stderr + err.Error()}
		}
		pool.give(p)
		return err
	}
}

// missing is what a call of withReader knows of objects that were not found.
type missing struct {
	seen  int64 // changes of the caches when it looked
	tries int
}

// maxMissed is how often a call looks again for what was not found.
const maxMissed = 5

// missed brings a cache up to date if an object was not found, and reports whether it
// has changed since the call looked.
func (r Repo) missed(ctx context.Context, err error, m *missing) (again bool, failed error) {
	if !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrNoRepository) {
		return false, nil
	}
	changed, failed := r.changed(ctx, m.seen)
	switch {
	case failed != nil:
		return false, fmt.Errorf("read objects: %w", failed)
	case !changed:
		return false, nil
	case m.tries == maxMissed:
		return false, lost(err)
	}
	m.seen = r.changes()
	if m.tries++; m.tries > 1 {
		r.Forget() // readers of a directory that was deleted
	}
	return true, nil
}

// read returns an object of the given type, or ErrNotFound if it has another type.
// It takes one round trip.
func (p *reader) read(id OID, want Type) (*Object, error) {
	head, err := p.ask(id)
	if err != nil {
		return nil, err
	}
	return p.wanted(head, want)
}

// questions is the number of objects requested at once. The requests fit into the
// pipe, so that neither process blocks while both write.
const questions = 64

// readAll is read for many objects, in batches of one round trip each. With
// allowMissing, objects that do not exist or have another type are skipped.
func (p *reader) readAll(ids []OID, want Type, allowMissing bool, do func(*Object) error) error {
	for batch := range slices.Chunk(ids, questions) {
		var text strings.Builder
		for _, id := range batch {
			text.WriteString("contents " + string(id) + "\n")
		}
		if _, err := io.WriteString(p.in, text.String()); err != nil {
			return fmt.Errorf("%w: %w", errBroken, err)
		}
		for i, id := range batch {
			head, err := p.header(string(id))
			var o *Object
			if err == nil {
				o, err = p.wanted(head, want)
			}
			if err == nil {
				err = do(o)
			} else if allowMissing && errors.Is(err, ErrNotFound) && !errors.As(err, new(unread)) {
				continue
			}
			if err != nil && i+1 < len(batch) && !errors.Is(err, errBroken) {
				err = unread{err}
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// wanted reads the content that follows a header if the object has the given type,
// and skips it otherwise.
func (p *reader) wanted(head Info, want Type) (_ *Object, err error) {
	id := head.OID
	switch {
	case head.Type == want && head.Size <= maxParsed:
		return p.content(head)
	case head.Type != want:
		err = fmt.Errorf("%s is a %s and no %s: %w", id, head.Type, want, ErrNotFound)
	default:
		err = fmt.Errorf("%s %s of %d bytes: %w", want, id, head.Size, ErrTooLarge)
	}
	if head.Size > MaxObject {
		return nil, unread{err} // starting a new process is faster than reading the content
	}
	if _, broken := p.out.Discard(int(head.Size) + 1); broken != nil {
		return nil, fmt.Errorf("%w: %w", errBroken, broken)
	}
	return nil, err
}

// unread is an error after which the reader has unread output.
type unread struct{ error }

func (u unread) Unwrap() error { return u.error }
