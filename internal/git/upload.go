package git

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"

	"svc/internal/git/pktline"
	"svc/internal/git/refstore"
)

// ServeOptions says how a client speaks to git.
type ServeOptions struct {
	// Protocol is what the client sent as GIT_PROTOCOL or Git-Protocol
	// ("version=2"). What does not look like that is not passed on.
	Protocol string
	// Stateless is for HTTP, where each request is on its own.
	Stateless bool
	// Hide holds the beginnings of refs that clients do not see.
	Hide []string
	// Flows, if it is set, is called when the pack of a push has begun: a client
	// computes before it, and sends it without pauses.
	Flows func()
}

// protocolText is what git's own server side accepts from HTTP.
var protocolText = regexp.MustCompile(`^[a-zA-Z0-9=.:_-]{1,200}$`)

func (o ServeOptions) env() []string {
	if !protocolText.MatchString(o.Protocol) {
		return nil
	}
	return []string{"GIT_PROTOCOL=" + o.Protocol}
}

// version is the protocol version that the client asked for.
func (o ServeOptions) version() string {
	if o.env() == nil {
		return "0"
	}
	for part := range strings.SplitSeq(o.Protocol, ":") {
		if v, ok := strings.CutPrefix(part, "version="); ok {
			return v
		}
	}
	return "0"
}

// AdvertiseUpload answers a client that wants to know what it can fetch over
// HTTP (GET info/refs).
func (r Repo) AdvertiseUpload(ctx context.Context, out io.Writer, o ServeOptions) error {
	if o.version() == "2" {
		if err := r.refs.Exists(); err != nil {
			return err
		}
		return writeCapabilities(out)
	}
	if err := writeService(out, "git-upload-pack"); err != nil {
		return err
	}
	o.Stateless = true
	return r.upload(ctx, strings.NewReader(""), out, o, "--http-backend-info-refs")
}

// writeService writes what stands before the refs over HTTP.
func writeService(out io.Writer, name string) error {
	_, err := out.Write(pktline.AppendFlush(pktline.Append(nil, "# service="+name+"\n")))
	return err
}

// UploadPack serves a fetch or clone: the whole conversation, or for HTTP the
// response to one POST. It ends with ctx; an error is for the log, the client
// has got its own message. Hidden refs, and commits that are reachable only from
// them, are not sent; concurrent clones of the same commits share a pack.
func (r Repo) UploadPack(ctx context.Context, in io.Reader, out io.Writer, o ServeOptions) error {
	if o.version() == "2" {
		return r.answerInquiries(ctx, in, out, o)
	}
	return r.upload(ctx, in, out, o)
}

func (r Repo) upload(ctx context.Context, in io.Reader, out io.Writer, o ServeOptions, more ...string) error {
	return r.engine.spool.Serve(ctx, r.scope(), "", out, func(ctx context.Context, out io.Writer) error {
		return r.runUpload(ctx, in, out, o, more...)
	})
}

// runUpload runs upload-pack at the pace of out.
func (r Repo) runUpload(ctx context.Context, in io.Reader, out io.Writer, o ServeOptions, more ...string) error {
	var args []string
	for _, prefix := range o.Hide {
		if !refstore.WellFormed(strings.TrimSuffix(prefix, "/")) {
			return fmt.Errorf("hide %.100q: %w", prefix, ErrBadRef)
		}
		args = append(args, "-c", "transfer.hideRefs="+prefix)
	}
	args = append(args, "upload-pack", "--strict")
	if o.Stateless {
		args = append(args, "--stateless-rpc")
	}
	args = append(append(args, more...), r.path)
	feed, err := newFeed(in)
	if err != nil {
		return err
	}
	defer feed.stop()
	c := command{work: transfer, args: args, env: o.env(), in: feed.file}
	return r.run(ctx, c, func(p io.Reader) error { return copyFlushed(out, p) })
}

// flusher is a writer that holds back what it is given, as that of HTTP does.
type flusher interface{ Flush() }

// copyFlushed passes on what is read as soon as it is there: the client waits
// for it before it says more.
func copyFlushed(out io.Writer, in io.Reader) error {
	f, _ := out.(flusher)
	buf := make([]byte, 64<<10)
	for {
		n, err := in.Read(buf)
		if n > 0 {
			if _, werr := out.Write(buf[:n]); werr != nil {
				return werr
			}
			if f != nil {
				f.Flush()
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
