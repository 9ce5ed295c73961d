package refstore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// WasAt reports whether a ref has an ID, or had it before according to its reflog.
// For ZeroOID it reports whether the ref is or was missing.
//
// The reflog is limited by housekeeping and is deleted with its ref: for a deleted
// ref only ZeroOID is known, and for a recreated ref only its later values. It
// returns ErrBadRef and ErrNoRepository.
func (r *Files) WasAt(ctx context.Context, ref string, id OID) (bool, error) {
	if err := CheckRef(ref); err != nil {
		return false, err
	}
	if err := r.Exists(ctx); err != nil {
		return false, err
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	// The reflog is written before the ref is updated, so it is read after the ref:
	// every value is seen in one of the two.
	now, err := r.follow(ref)
	switch {
	case err == nil && now == id, errors.Is(err, ErrNotFound) && id == ZeroOID:
		return true, nil
	case err != nil && !errors.Is(err, ErrNotFound):
		return false, err
	}
	f, err := os.Open(filepath.Join(r.dir, "logs", filepath.FromSlash(ref)))
	if err == nil {
		defer f.Close()
		held := false
		if held, err = inReflog(f, id); err == nil {
			return held, nil
		}
	}
	if notAFile(err) { // no reflog, or a directory of other refs
		return false, nil
	}
	return false, fmt.Errorf("read the log of %s: %w", ref, err)
}

// markPrefix is the prefix of the mark of an update in a reflog.
const markPrefix = "push "

// Happened reports whether an update with a mark was made, even if the ref has
// moved since. For a deletion it only checks that the ref is missing now, because
// the reflog is deleted with it. It returns ErrBadRef and ErrNoRepository.
func (r *Files) Happened(ctx context.Context, u Update, mark string) (bool, error) {
	if err := CheckRef(u.Ref); err != nil {
		return false, err
	}
	if err := r.Exists(ctx); err != nil {
		return false, err
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	// The reflog is written before the ref moves, so it is read after the ref.
	now, err := r.follow(u.Ref)
	if errors.Is(err, ErrNotFound) {
		return u.New == ZeroOID, nil
	}
	if err != nil || u.New == ZeroOID {
		return false, err
	}
	f, err := os.Open(filepath.Join(r.dir, "logs", filepath.FromSlash(u.Ref)))
	if notAFile(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the log of %s: %w", u.Ref, err)
	}
	defer f.Close()
	found, next, err := afterMark(f, mark)
	if err != nil {
		return false, fmt.Errorf("read the log of %s: %w", u.Ref, err)
	}
	if next == "" {
		next = now
	}
	return found && next == u.New, nil
}

// afterMark finds the last line of a reflog with the mark, and the old value of
// the next update, or an empty string if there is none. The line itself proves
// nothing: a crash may have happened before the update. The old value in a line is
// reliable, because git read it while the ref was locked.
func afterMark(log io.Reader, mark string) (found bool, next OID, err error) {
	in := bufio.NewReader(log)
	for {
		line, err := in.ReadString('\n')
		if err != nil && err != io.EOF {
			return false, "", err
		}
		if field := strings.SplitN(line, " ", 3); err == nil && len(field) == 3 {
			if found && next == "" {
				next = OID(field[0])
			}
			if _, why, _ := strings.Cut(strings.TrimSuffix(field[2], "\n"), "\t"); why == markPrefix+mark {
				found, next = true, ""
			}
		}
		if err == io.EOF {
			return found, next, nil
		}
	}
}

// inReflog reports whether an ID is an old value in a reflog, with lines of "<old>
// <new> <who and when>\t<why>". A new value proves nothing: a crash may have
// happened before the update. Incomplete lines are skipped.
func inReflog(log io.Reader, id OID) (bool, error) {
	in := bufio.NewReader(log)
	for {
		line, err := in.ReadString('\n')
		if field := strings.SplitN(line, " ", 3); len(field) == 3 && OID(field[0]) == id {
			return true, nil
		}
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
}
