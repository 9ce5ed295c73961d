package sshd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/lfs"
	"svc/internal/limit"
	"svc/internal/project"
	"svc/internal/repo"
)

// session is one command of a client.
type session struct {
	*Server
	conn        *conn
	channel     ssh.Channel
	fingerprint string
	unchecked   bool   // the key could not be checked
	protocol    string // value of GIT_PROTOCOL
}

// run handles the requests of a session until the client closes it, and then cancels
// the running command.
func (x *session) run(ctx context.Context, requests <-chan *ssh.Request) {
	ctx, cancel := context.WithCancel(ctx)
	var command sync.WaitGroup
	defer command.Wait()
	defer cancel()
	defer x.channel.Close()
	begun := false
	for r := range requests {
		ok := false
		switch r.Type {
		case "env":
			ok = !begun && x.setEnv(r.Payload)
		case "exec", "shell":
			var line struct{ Text string }
			if begun || r.Type == "exec" && ssh.Unmarshal(r.Payload, &line) != nil || !x.begin(x.conn) {
				break
			}
			ok, begun = true, true
			// The reply is sent before the output of the command.
			_ = r.Reply(true, nil)
			command.Go(func() {
				defer x.end(x.conn)
				x.exit(x.safely(ctx, line.Text))
			})
			continue
		}
		if r.WantReply {
			_ = r.Reply(ok, nil)
		}
	}
}

// setEnv accepts the variable GIT_PROTOCOL, the only one that git needs.
func (x *session) setEnv(payload []byte) bool {
	var v struct{ Name, Value string }
	if ssh.Unmarshal(payload, &v) != nil || v.Name != "GIT_PROTOCOL" {
		return false
	}
	x.protocol = v.Value
	return true
}

func (x *session) exit(status uint32) {
	// Errors are ignored: the client may have disconnected.
	_ = x.channel.CloseWrite()
	_, _ = x.channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
	_ = x.channel.Close()
}

// safely runs a command and recovers from panics, so that they do not stop the
// server.
func (x *session) safely(ctx context.Context, line string) (status uint32) {
	defer func() {
		if p := recover(); p != nil {
			x.Log.ErrorContext(ctx, "request panicked", "fingerprint", x.fingerprint, "panic", p, "stack", string(debug.Stack()))
			status = 1
		}
	}()
	return x.exec(ctx, line)
}

// exec runs a command line and returns its exit status.
func (x *session) exec(ctx context.Context, line string) uint32 {
	ctx = limit.WithAddress(x.Trace(ctx), x.conn.addr.String())
	start := time.Now()
	by, err := x.signIn(ctx)
	if err != nil {
		x.refuse(ctx, err, "")
		x.note(ctx, by, command{}, start, err)
		return 1
	}
	limit.Identify(ctx, by.Account())
	if line == "" {
		fmt.Fprintln(x.channel, x.greeting(by))
		return 0
	}
	c, ok := parseCommand(line)
	if !ok {
		fmt.Fprintln(x.channel, x.greeting(by))
		fmt.Fprintln(x.channel.Stderr(), "Shell access is not available. Use git: clone, fetch, push and archive.")
		return 1
	}
	if c.alias != "" {
		c.project, err = x.Projects.Aliased(ctx, c.alias)
	}
	switch {
	case err != nil:
		x.refuse(ctx, err, c.service)
	case c.service == lfsAuthenticate:
		err = x.authenticateLFS(ctx, by, c)
	default:
		err = x.serve(ctx, by, c)
	}
	x.note(ctx, by, c, start, err)
	if err != nil {
		return 1
	}
	return 0
}

// signIn authenticates the key of the connection.
func (x *session) signIn(ctx context.Context) (actor.Actor, error) {
	if x.unchecked {
		return actor.Actor{}, errs.Unavailable("The service is not available now. Try again in a moment.")
	}
	return x.who(ctx, x.fingerprint, x.conn.addr.String())
}

func (x *session) greeting(by actor.Actor) string {
	if by.Deploy != nil {
		return fmt.Sprintf("Welcome to %s! This is the deploy key %q.", x.Name, by.Deploy.Name)
	}
	return fmt.Sprintf("Welcome to %s, @%s!", x.Name, by.Username)
}

// serve runs a git service for the client. Errors before git starts are written to
// standard error; later ones are sent in the git protocol.
func (x *session) serve(ctx context.Context, by actor.Actor, c command) error {
	service, err := x.open(ctx, by, c.service, c.project)
	if moved, ok := errors.AsType[*project.Moved](err); ok {
		fmt.Fprintf(x.channel.Stderr(), "The project has moved to %s. Please use the new address: git remote set-url origin …/%s.git\n", moved.Path, moved.Path)
		service, err = x.open(ctx, by, c.service, project.Ref(moved.Path))
	}
	if err != nil {
		x.refuse(ctx, err, c.service)
		return err
	}
	options := git.ServeOptions{Protocol: x.protocol}
	if c.service == uploadPack {
		err = x.fetch(ctx, func(ctx context.Context, in io.Reader, out io.Writer) error { return service(ctx, in, out, options) })
	} else {
		err = service(ctx, x.channel, pacedWriter{x}, options)
	}
	if errors.Is(err, errSilent) {
		err = errs.Invalid("The client sent nothing for too long.").Because(err)
		x.refuse(ctx, err, c.service)
		return err
	}
	if errs.Is(err, errs.KindUnavailable) { // git had no slot and sent no message
		x.refuse(ctx, err, c.service)
	}
	return err
}

// pacedWriter disconnects a client that reads nothing for too long. Keep-alive
// messages do not count as progress.
type pacedWriter struct{ x *session }

// pacedPart is the number of bytes that a client must read within that time.
const pacedPart = 32 << 10

// Write implements io.Writer.
func (w pacedWriter) Write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		cut := time.AfterFunc(w.x.Limits.Stall, func() { _ = w.x.conn.net.Close() })
		n, err := w.x.channel.Write(p[written:min(len(p), written+pacedPart)])
		cut.Stop()
		written += n
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// gitService serves a fetch or push of a repository.
type gitService func(context.Context, io.Reader, io.Writer, git.ServeOptions) error

func (x *session) open(ctx context.Context, by actor.Actor, service string, ref project.Ref) (gitService, error) {
	if ref == "" {
		return nil, errs.NotFound("Project")
	}
	if service == receivePack {
		p, err := x.Repos.Push(ctx, by, ref)
		if err != nil {
			return nil, err
		}
		return p.ReceivePack, nil
	}
	f, err := x.Repos.Fetch(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	if service == uploadArchive {
		return archiveOf(f), nil
	}
	return f.UploadPack, nil
}

func archiveOf(f *repo.Fetching) gitService {
	return func(ctx context.Context, in io.Reader, out io.Writer, _ git.ServeOptions) error {
		return f.UploadArchive(ctx, in, out)
	}
}

// refuse writes an error to the client's standard error.
func (x *session) refuse(ctx context.Context, err error, service string) {
	_, _ = fmt.Fprintf(x.channel.Stderr(), "ERROR: %s\n", reason(err, service)) // the client may have disconnected
	if errs.KindOf(err) == 0 && ctx.Err() == nil {
		x.Log.ErrorContext(ctx, "git request over SSH failed", "service", service, "fingerprint", x.fingerprint, "error", err)
	}
}

// reason returns the error message for the client.
func reason(err error, service string) string {
	refused, ok := errs.As(err)
	if !ok {
		return "Something went wrong on the server. Please try again."
	}
	switch refused.Kind {
	case errs.KindNotFound:
		if refused.Text == lfs.Disabled {
			return "Git LFS is not enabled for this project."
		}
		return "The project does not exist, or you don't have access to it."
	case errs.KindUnauthorized, errs.KindForbidden:
		switch {
		case refused.Text != "":
			return refused.Text
		case service == "":
			return "Your key is not accepted any more."
		case service == receivePack || service == string(lfs.Upload):
			return "You are not allowed to push code to this project."
		}
		return "You are not allowed to download code from this project."
	}
	return refused.Text
}

// note logs a command and counts it.
func (x *session) note(ctx context.Context, by actor.Actor, c command, start time.Time, err error) {
	outcome := "ok"
	switch {
	case err == nil:
	case ctx.Err() != nil:
		outcome = "gone"
	case errs.KindOf(err) != 0:
		outcome = "refused"
	default:
		outcome = "failed"
	}
	if c.service != "" {
		x.Count(c.service, outcome)
	}
	attrs := []slog.Attr{
		slog.String("service", c.service), slog.String("project", string(c.project)), slog.String("outcome", outcome),
		slog.Duration("duration", time.Since(start)), slog.String("user", by.Username), slog.String("fingerprint", x.fingerprint),
		slog.String("ip", x.conn.addr.String()),
	}
	if by.Deploy != nil {
		attrs = append(attrs, slog.Int64("deploy_key", by.Deploy.ID))
	}
	if err != nil {
		attrs = append(attrs, slog.Any("error", err))
	}
	x.Log.LogAttrs(ctx, slog.LevelInfo, "ssh", attrs...)
}
