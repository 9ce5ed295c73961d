package git

import (
	"bufio"
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

// reader is a long-lived process that answers questions about objects, one
// at a time, for one holder at a time.
type reader struct {
	scope string
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	said  *tail
	spent bool // it has answered before
	since time.Time
	epoch int // of the pool when it was started
	// release returns the slot of its holder.
	release func()
}

// errBroken marks a reader whose answer could not be read to its end; it is
// not used again.
var errBroken = errors.New("the reader of objects broke off")

func (e *Engine) startReader(r Repo) (*reader, error) {
	// The process outlives the request that needs it first.
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

// info asks for an object by any name that git knows; the caller has seen to
// it that there is no line break in it.
func (p *reader) info(name string) (Info, error) {
	if _, err := io.WriteString(p.in, "info "+name+"\n"); err != nil {
		return Info{}, fmt.Errorf("%w: %w", errBroken, err)
	}
	return p.header(name)
}

// contents reads the object that info describes.
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

// ask asks for an object; its content follows what it gives.
func (p *reader) ask(id OID) (Info, error) {
	if _, err := io.WriteString(p.in, "contents "+string(id)+"\n"); err != nil {
		return Info{}, fmt.Errorf("%w: %w", errBroken, err)
	}
	return p.header(string(id))
}

// content reads what follows the answer to ask.
func (p *reader) content(head Info) (*Object, error) {
	content := make([]byte, head.Size+1) // with the line break that follows
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
	return Info{}, fmt.Errorf("%w: answer %.100q", errBroken, line)
}

// end stops the process and gives what it said last.
func (p *reader) end() string {
	p.in.Close()
	_ = p.cmd.Cancel() // it has nothing to save
	_ = p.cmd.Wait()
	return p.said.String()
}

// withReader calls ask with a reader of the repository. When ctx ends or the
// time for reading is over, the process is killed and not used again, so what
// one caller leaves unread never reaches another. A process that had been
// idle and turns out dead is replaced once.
func (r Repo) withReader(ctx context.Context, ask func(*reader) error) error {
	pool := r.engine.readers
	defer r.engine.uses.begin(r.dirs())()
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
			spent := p.spent
			said := pool.drop(p)
			if spent {
				continue
			}
			if kind := kindOf(said); kind != ErrCommand {
				return &Error{Kind: kind, Name: "cat-file", Exit: -1, Stderr: said}
			}
			return &Error{Kind: ErrCorrupt, Name: "cat-file", Exit: -1, Stderr: said + err.Error()}
		}
		pool.give(p)
		return err
	}
}

// read returns an object that must be of the type; another one is not found. It
// takes one question, not two: each costs a turn of both processes.
func (p *reader) read(id OID, want Type) (*Object, error) {
	head, err := p.ask(id)
	if err != nil {
		return nil, err
	}
	return p.wanted(head, want)
}

// questions is how many are asked at once: their text is held by the pipe, so
// that no one waits for the other while both write.
const questions = 64

// readAll is read for many objects, each of which is handed to do. They are
// asked for together, which takes a turn of both processes and not one for
// each. With leave, what is not there or is something else is left out.
func (p *reader) readAll(ids []OID, want Type, leave bool, do func(*Object) error) error {
	for part := range slices.Chunk(ids, questions) {
		var text strings.Builder
		for _, id := range part {
			text.WriteString("contents " + string(id) + "\n")
		}
		if _, err := io.WriteString(p.in, text.String()); err != nil {
			return fmt.Errorf("%w: %w", errBroken, err)
		}
		for i, id := range part {
			head, err := p.header(string(id))
			var o *Object
			if err == nil {
				o, err = p.wanted(head, want)
			}
			if err == nil {
				err = do(o)
			} else if leave && errors.Is(err, ErrNotFound) && !errors.As(err, new(unread)) {
				continue
			}
			if err != nil && i+1 < len(part) && !errors.Is(err, errBroken) {
				err = unread{err}
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// wanted reads what follows the answer to a question, if it is of the type.
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
		return nil, unread{err} // a new process is quicker than to read it all
	}
	if _, broken := p.out.Discard(int(head.Size) + 1); broken != nil {
		return nil, fmt.Errorf("%w: %w", errBroken, broken)
	}
	return nil, err
}

// unread is an error after which the reader has something left to say that no
// one needs.
type unread struct{ error }

func (u unread) Unwrap() error { return u.error }
