package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"svc/internal/errs"
	"svc/internal/git/pktline"
	"svc/internal/limit"
)

// ReceivePack receives a push: the whole conversation over SSH, or one POST
// request with Stateless. No hooks run; the callbacks in the options decide. Until
// then new objects are in a quarantine, which is removed if the push is refused.
//
// The error is for the log: the client has got its own message if possible. A push
// with refused changes is not an error; the Push shows which. It is nil if the
// client requested nothing.
func (r Repo) ReceivePack(ctx context.Context, in io.Reader, out io.Writer, o PushOptions) (*Push, error) {
	if !o.Stateless {
		if err := r.advertise(ctx, out, o); err != nil {
			return nil, err
		}
		flush(out)
	}
	buffered := bufio.NewReaderSize(in, 64<<10)
	q, err := readRequest(buffered)
	if err != nil {
		_, _ = out.Write(pktline.Append(nil, "ERR "+pktline.ErrMalformed.Error()+"\n")) // the client may be gone
		return nil, fmt.Errorf("receive push: %w", err)
	}
	if q == nil {
		return nil, nil
	}
	p := &receiver{repo: r, o: o, request: q, out: &lockedWriter{w: out}, large: r.engine.large}
	push, err := p.receive(ctx, buffered)
	if err != nil {
		return push, fmt.Errorf("receive push: %w", err)
	}
	return push, nil
}

// receiver is the state of one push.
type receiver struct {
	repo    Repo
	o       PushOptions
	request *request
	out     *lockedWriter
	push    *Push
	unseen  *unseen      // nil if no refs are hidden from the client
	large   *limit.Share // slots for large packs; nil for an import, which has its own limit
}

func (p *receiver) receive(ctx context.Context, in io.Reader) (*Push, error) {
	p.push = &Push{Changes: p.request.changes, Options: p.request.options, Atomic: p.request.capabilities["atomic"]}
	if p.banded() {
		p.push.screen = pktline.Band{W: p.out, Channel: 2}
	}
	p.checkChanges(ctx)
	q, err := p.repo.newQuarantine(ctx)
	if err != nil {
		why := reason(err, "the repository cannot take it now")
		p.refuseAll(why)
		return p.push, errors.Join(err, p.report(why))
	}
	defer q.discard()
	p.push.Repo = q.view()
	if err := p.findUnseen(ctx); err != nil {
		p.refuseAll("internal error")
		return p.push, errors.Join(err, p.report("the repository cannot take it now"))
	}
	if p.request.sendsPack() {
		if err := p.unpack(ctx, q, in); err != nil {
			if p.o.Stateless && errors.Is(err, ErrBusy) {
				return p.push, err // nothing was sent, so the caller can respond with a status
			}
			p.refuseAll("unpacker error")
			return p.push, errors.Join(err, p.report(p.unpackFailure(err)))
		}
	}
	stop := p.keepAlive()
	err = p.decide(ctx, q)
	if err == nil {
		err = p.update(ctx, q)
	}
	stop()
	return p.push, errors.Join(err, p.report("ok"))
}

// checkChanges refuses invalid and hidden names, and changes of refs that have
// moved. The latter is checked again when the ref is updated; checking early
// avoids receiving useless objects.
func (p *receiver) checkChanges(ctx context.Context) {
	seen := map[string]bool{}
	for _, c := range p.push.Changes {
		switch err := CheckRef(c.Ref); {
		case err != nil:
			c.Refused = "funny refname"
		case p.o.hidden(c.Ref):
			c.Refused = "deny updating a hidden ref"
		case seen[c.Ref]:
			c.Refused = "multiple updates for ref not allowed"
		case c.Old == ZeroOID && c.New == ZeroOID:
			c.Refused = "there is nothing to delete"
		default:
			if now, err := p.repo.follow(ctx, c.Ref); err == nil && now != c.Old {
				c.Refused = fmt.Sprintf("is at %s but expected %s", now, c.Old)
			} else if errors.Is(err, ErrNotFound) && c.Old != ZeroOID {
				c.Refused = fmt.Sprintf("is not there but expected at %s", c.Old)
			}
		}
		seen[c.Ref] = true
	}
}

// decide checks that the new history is complete and calls the Check callback.
func (p *receiver) decide(ctx context.Context, q *quarantine) error {
	if err := p.connected(ctx, q); err != nil {
		p.refuseAll(reason(err, "internal error"))
		return err
	}
	if err := p.checkSeen(ctx, q); err != nil {
		p.refuseAll(reason(err, "internal error"))
		return err
	}
	if p.o.Check != nil && len(p.accepted()) > 0 {
		if err := p.o.Check(ctx, p.push); err != nil {
			p.refuseAll(reason(err, "internal error"))
			return err
		}
	}
	if p.push.Atomic && len(p.accepted()) < len(p.push.Changes) {
		p.refuseAll("atomic push failed")
	}
	return nil
}

// update migrates the objects and updates the refs.
func (p *receiver) update(ctx context.Context, q *quarantine) error {
	changes := p.accepted()
	if len(changes) == 0 {
		return nil
	}
	// From here on the push is completed even if the client disconnects.
	ctx = context.WithoutCancel(ctx)
	if err := q.migrate(); err != nil {
		p.refuseAll(reason(err, "internal error"))
		return err
	}
	err := p.move(ctx, changes)
	if conflicts := errors.Is(err, ErrConflict) || errors.Is(err, ErrNotFound); conflicts && !p.push.Atomic && len(changes) > 1 {
		// One transaction is fast; if a ref cannot be moved, they are updated one by one.
		err = nil
		for _, c := range changes {
			err = errors.Join(err, p.move(ctx, []*RefChange{c}))
		}
	}
	if p.o.Done != nil && len(p.accepted()) > 0 {
		err = errors.Join(err, p.o.Done(ctx, p.push))
	}
	return err
}

// move updates refs in one transaction. Conflicts are stored in Refused and are
// not an error.
func (p *receiver) move(ctx context.Context, changes []*RefChange) error {
	updates := make([]Update, len(changes))
	for i, c := range changes {
		c.Refused = ""
		updates[i] = Update{Ref: c.Ref, Old: c.Old, New: c.New}
	}
	var err error
	if p.o.Update != nil {
		err = p.o.Update(ctx, p.push, updates)
	} else {
		err = p.repo.UpdateRefsAs(ctx, p.push.Mark, updates)
	}
	if err == nil {
		return nil
	}
	why := reason(err, "failed to update ref")
	var conflict *RefConflict
	if errors.As(err, &conflict) {
		for _, c := range changes {
			c.Refused = "another ref of the push could not be moved"
			if c.Ref == conflict.Ref || len(changes) == 1 {
				c.Refused = shorten(conflict.Why)
			}
		}
		if len(changes) == 1 || p.push.Atomic {
			return nil
		}
		return err
	}
	if errors.Is(err, ErrNotFound) {
		why = "the object is not allowed in this ref"
	}
	for _, c := range changes {
		c.Refused = why
	}
	if errors.Is(err, ErrNotFound) && (len(changes) == 1 || p.push.Atomic) {
		return nil
	}
	return err
}

// reason returns the message for the client: the text of an error that is meant
// for callers, such as that the server is busy, or otherwise.
func reason(err error, otherwise string) string {
	if refused, ok := errs.As(err); ok && refused.Kind == errs.KindUnavailable && refused.Text != "" {
		return refused.Text
	}
	return otherwise
}

func (p *receiver) accepted() []*RefChange {
	var list []*RefChange
	for _, c := range p.push.Changes {
		if c.Refused == "" {
			list = append(list, c)
		}
	}
	return list
}

func (p *receiver) refuseAll(why string) {
	for _, c := range p.accepted() {
		c.Refused = why
	}
}

// missingObjects is the reason for refusing an incomplete history, in git's words.
const missingObjects = "missing necessary objects"

// maxConnected is the number of processes that search a push for the changes whose
// history is incomplete. If they do not suffice, the others are refused as well.
const maxConnected = 200

// connected refuses changes whose history is incomplete: objects that are not in
// the pack must be reachable from an existing ref. It checks all changes at once,
// and then the halves of those that fail.
func (p *receiver) connected(ctx context.Context, q *quarantine) error {
	left := maxConnected
	var check func(changes []*RefChange) error
	check = func(changes []*RefChange) error {
		whole := false
		if left > 0 {
			left--
			var err error
			if whole, err = p.reaches(ctx, q, changes); err != nil || whole {
				return err
			}
		}
		if half := len(changes) / 2; left > 0 && half > 0 {
			if err := check(changes[:half]); err != nil {
				return err
			}
			return check(changes[half:])
		}
		for _, c := range changes {
			if c.New != ZeroOID { // a deletion needs no objects
				c.Refused = missingObjects
			}
		}
		return nil
	}
	return check(p.accepted())
}

func (p *receiver) reaches(ctx context.Context, q *quarantine, changes []*RefChange) (bool, error) {
	var ids strings.Builder
	for _, c := range changes {
		if c.New != ZeroOID {
			ids.WriteString(string(c.New) + "\n")
		}
	}
	if ids.Len() == 0 {
		return true, nil
	}
	c := command{work: writing, env: q.env(), in: strings.NewReader(ids.String()),
		args: []string{"rev-list", "--objects", "--stdin", "--not", "--all", "--quiet"}}
	_, err := p.repo.output(ctx, c)
	var failure *Error
	if errors.As(err, &failure) && failure.Exit > 0 {
		return false, nil
	}
	return err == nil, err
}

func (p *receiver) banded() bool { return p.request.capabilities["side-band-64k"] }

// report sends the result of the push to the client (report-status).
func (p *receiver) report(unpacked string) error {
	if !p.request.capabilities["report-status"] && !p.request.capabilities["report-status-v2"] {
		return nil
	}
	b := pktline.Append(nil, "unpack "+unpacked+"\n")
	for _, c := range p.push.Changes {
		if c.Refused == "" {
			b = pktline.Append(b, "ok "+c.Ref+"\n")
		} else {
			b = pktline.Append(b, "ng "+c.Ref+" "+shorten(c.Refused)+"\n")
		}
	}
	b = pktline.AppendFlush(b)
	var err error
	if p.banded() {
		_, err = pktline.Band{W: p.out, Channel: 1}.Write(b)
		b = pktline.AppendFlush(nil)
	}
	if err == nil {
		_, err = p.out.Write(b)
	}
	flush(p.out.w)
	return err
}

// shorten reduces a text to one line of limited length.
func shorten(why string) string {
	why = strings.Join(strings.Fields(why), " ")
	if len(why) > 1000 {
		why = why[:1000]
	}
	return strings.ToValidUTF8(why, "")
}

// keepAlive sends empty packets while the client waits, so that proxies do not
// close the connection, until stop is called.
func (p *receiver) keepAlive() (stop func()) {
	if !p.banded() {
		return func() {}
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(5 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				_, _ = p.out.Write([]byte("0005\x01"))
				flush(p.out.w)
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

func flush(w io.Writer) {
	if f, ok := w.(flusher); ok {
		f.Flush()
	}
}

// lockedWriter serializes writes of whole packets.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
