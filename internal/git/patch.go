package git

import (
	"bufio"
	"context"
	"fmt"
	"io"
)

// maxPatch is the maximum size of the output of Patch in bytes.
const maxPatch = 64 << 20

// RawDiff returns the options of a diff for WriteRaw.
func RawDiff() DiffOptions {
	return DiffOptions{MaxFiles: 10_000, MaxLines: 1_000_000, MaxSize: 64 << 20, MaxFileSize: 16 << 20, Unidiff: true}
}

// WriteRaw writes a diff that was made with RawDiff in the format of git.
func (d *Diff) WriteRaw(w io.Writer) error {
	out := bufio.NewWriter(w)
	for _, f := range d.Files {
		f.writeRaw(out)
	}
	return out.Flush()
}

// writeRaw writes the diff of one file in the format of git. A write error is
// returned by the Flush of out.
func (f FileDiff) writeRaw(out *bufio.Writer) {
	fmt.Fprintf(out, "diff --git a/%s b/%s\n", f.OldPath, f.NewPath)
	switch {
	case f.New:
		fmt.Fprintf(out, "new file mode %s\n", f.BMode)
	case f.Deleted:
		fmt.Fprintf(out, "deleted file mode %s\n", f.AMode)
	case f.AMode != f.BMode:
		fmt.Fprintf(out, "old mode %s\nnew mode %s\n", f.AMode, f.BMode)
	}
	if f.Renamed {
		fmt.Fprintf(out, "rename from %s\nrename to %s\n", f.OldPath, f.NewPath)
	}
	if f.OldID != f.NewID {
		fmt.Fprintf(out, "index %s..%s\n", f.OldID, f.NewID)
	}
	if f.Binary {
		fmt.Fprintf(out, "Binary files a/%s and b/%s differ\n", f.OldPath, f.NewPath)
	}
	fmt.Fprint(out, f.Diff)
}

// Patch streams the commits of to that from does not have as emails for git am, the
// oldest first; with an empty from all commits of to. Merge commits are left out.
// Concurrent requests for the same commits share one process. It returns ErrNotFound
// if a commit does not exist; in this case nothing was written. After any other error,
// such as ErrTooLarge, the output is incomplete.
func (r Repo) Patch(ctx context.Context, w io.Writer, from, to OID) error {
	revs := []string{"--root", "--end-of-options", string(to)}
	if from != "" {
		revs = []string{"--end-of-options", string(from) + ".." + string(to)}
	}
	args := append([]string{"format-patch", "--stdout", "--no-signature", "--find-renames", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv",
		"--submodule=short", "--src-prefix=a/", "--dst-prefix=b/"}, revs...)
	key := "patch " + string(from) + ".." + string(to)
	err := r.engine.spool.Serve(ctx, r.scope(), r.scope()+"\x00"+key, w, func(ctx context.Context, w io.Writer) error {
		return r.run(ctx, command{args: args}, func(out io.Reader) error {
			n, err := io.Copy(w, io.LimitReader(out, maxPatch+1))
			if err == nil && n > maxPatch {
				err = ErrTooLarge
			}
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("patch of %s: %w", to, err)
	}
	return nil
}
