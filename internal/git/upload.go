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

// ServeOptions are the protocol options of a client.
type ServeOptions struct {
	// Protocol is the value of GIT_PROTOCOL or the Git-Protocol header ("version=2").
	// Invalid values are ignored.
	Protocol string
	// Stateless is set for HTTP.
	Stateless bool
	// Hide are the prefixes of hidden refs.
	Hide []string
	// Still returns them again for each request after the first one of a client that stays
	// connected. An error ends the connection; it is shown to the client. May be nil.
	Still func(context.Context) (hide []string, err error)
	// Flows is called when the pack of a push starts to arrive; may be nil. Before
	// that the client may need a long time to compute the pack.
	Flows func()
}

// protocolText matches the values that git http-backend accepts.
var protocolText = regexp.MustCompile(`^[a-zA-Z0-9=.:_-]{1,200}$`)

func (o ServeOptions) env() []string {
	if !protocolText.MatchString(o.Protocol) {
		return nil
	}
	return []string{"GIT_PROTOCOL=" + o.Protocol}
}

// version returns the protocol version that the client requested.
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

// AdvertiseUpload answers GET info/refs for a fetch over HTTP.
func (r Repo) AdvertiseUpload(ctx context.Context, out io.Writer, o ServeOptions) error {
	if o.version() == "2" {
		if err := r.refs.Exists(ctx); err != nil {
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

// writeService writes the service header of info/refs.
func writeService(out io.Writer, name string) error {
	_, err := out.Write(pktline.AppendFlush(pktline.Append(nil, "# service="+name+"\n")))
	return err
}

// UploadPack serves a fetch or clone: the whole conversation, or the response to
// one POST request over HTTP. It ends with ctx. The error is for the log; the
// client has got its own message. Hidden refs, and commits that are reachable only
// from them, are not sent. Concurrent clones of the same commits share a pack.
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

// runUpload runs git upload-pack at the speed of out.
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

// flusher is a buffering writer, such as http.ResponseWriter.
type flusher interface{ Flush() }

// copyFlushed copies and flushes immediately, because the client waits for the
// answer before it sends more.
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
