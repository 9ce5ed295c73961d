package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"svc/internal/git/pktline"
	"svc/internal/git/refstore"
)

// archiveOption matches the allowed options of git archive: none that refer to
// files or programs of the server.
var archiveOption = regexp.MustCompile(`^(--format=(tar|tgz|tar\.gz|zip)|--prefix=.*|-v|--verbose|-[0-9]|--mtime=.*)$`)

const maxArchiveArgs = 64

// UploadArchive serves git archive --remote for branches and tags, or paths in
// them. It ends with ctx. The error is for the log; the client has got its own
// message.
func (r Repo) UploadArchive(ctx context.Context, in io.Reader, out io.Writer) error {
	if err := r.refs.Exists(ctx); err != nil {
		return err
	}
	args, err := readArguments(in)
	if err == nil {
		args, err = r.checkArguments(ctx, args)
	}
	if err != nil {
		_, _ = out.Write(pktline.Append(nil, "NACK "+shorten(err.Error())+"\n")) // the client may be gone
		return fmt.Errorf("serve archive: %w", err)
	}
	var request []byte
	for _, arg := range args {
		request = pktline.Append(request, "argument "+arg+"\n")
	}
	c := command{work: transfer, args: []string{"upload-archive", r.path}, in: bytes.NewReader(pktline.AppendFlush(request))}
	return r.engine.spool.Serve(ctx, r.scope(), "", out, func(ctx context.Context, out io.Writer) error {
		return r.run(ctx, c, func(p io.Reader) error { return copyFlushed(out, p) })
	})
}

// errArgument means that an argument is not allowed.
var errArgument = errors.New("not allowed here")

// readArguments reads "argument <text>" lines up to a flush packet.
func readArguments(in io.Reader) ([]string, error) {
	var args []string
	for {
		line, kind, err := pktline.ReadLine(in)
		if err != nil {
			return nil, err
		}
		if kind == pktline.Flush {
			return args, nil
		}
		arg, ok := strings.CutPrefix(line, "argument ")
		if kind != pktline.Data || !ok || len(args) == maxArchiveArgs || len(arg) > 4096 || strings.ContainsAny(arg, "\x00\n") {
			return nil, fmt.Errorf("%w: argument %d", pktline.ErrMalformed, len(args)+1)
		}
		args = append(args, arg)
	}
}

// checkArguments checks the options and replaces the branch or tag by its full
// name, because git would prefer a tag to a branch. The result has the options
// first, and git takes nothing after "--" for one: it would also read options
// between and behind paths, and could be asked not to list after all.
func (r Repo) checkArguments(ctx context.Context, args []string) ([]string, error) {
	var options, paths []string
	for i, arg := range args {
		switch {
		case arg == "-l" || arg == "--list":
			return []string{"--list"}, nil // git prints the formats and ignores other arguments
		case arg == "--":
			paths = append(paths, args[i+1:]...)
			return r.archived(ctx, options, paths)
		case !strings.HasPrefix(arg, "-"):
			paths = append(paths, arg)
		case archiveOption.MatchString(arg):
			options = append(options, arg)
		default:
			return nil, fmt.Errorf("option %.100q: %w", arg, errArgument)
		}
	}
	return r.archived(ctx, options, paths)
}

// archived returns the arguments of git archive for options and the branch or tag,
// which may be followed by paths.
func (r Repo) archived(ctx context.Context, options, paths []string) ([]string, error) {
	if len(paths) == 0 {
		return nil, fmt.Errorf("no branch or tag: %w", errArgument)
	}
	name, path, inside := strings.Cut(paths[0], ":")
	full, err := r.publicName(ctx, name)
	if err != nil {
		return nil, err
	}
	if inside {
		full += ":" + path
	}
	return slices.Concat(options, []string{"--", full}, paths[1:]), nil
}

// publicName returns the full name of a branch or tag.
func (r Repo) publicName(ctx context.Context, name string) (string, error) {
	prefixes := []string{Heads, Tags}
	if name == "HEAD" || strings.HasPrefix(name, Heads) || strings.HasPrefix(name, Tags) {
		prefixes = []string{""}
	}
	for _, prefix := range prefixes {
		if !refstore.WellFormedOneLevel(prefix + name) {
			continue
		}
		if _, err := r.follow(ctx, prefix+name); err == nil {
			return prefix + name, nil
		}
	}
	return "", fmt.Errorf("no such ref: %.100q", name)
}
