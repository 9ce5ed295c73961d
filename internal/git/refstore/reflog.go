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
// The log reaches back as far as housekeeping lets it, and goes with its ref:
// of one that was deleted only ZeroOID is known, of one that was made again
// only what came after. It returns ErrBadRef and ErrNoRepository.
func (r *Files) WasAt(ctx context.Context, ref string, id OID) (bool, error) {
	if err := CheckRef(ref); err != nil {
		return false, err
	}
	if err := r.Exists(); err != nil {
		return false, err
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	// The log is written before the ref moves, so it is read after it: what
	// the ref holds until then is seen in one of the two.
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
	if notAFile(err) { // no log, or the directory of others
		return false, nil
	}
	return false, fmt.Errorf("read the log of %s: %w", ref, err)
}

// markPrefix stands before the mark of an update in the log of a ref.
const markPrefix = "push "

// Happened reports whether an update that was tried with a mark was made, also
// when the ref has moved on. For a deletion it can only check that the ref is
// missing now, because the reflog is deleted with it. It returns ErrBadRef and
// ErrNoRepository.
func (r *Files) Happened(ctx context.Context, u Update, mark string) (bool, error) {
	if err := CheckRef(u.Ref); err != nil {
		return false, err
	}
	if err := r.Exists(); err != nil {
		return false, err
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	// The log is written before the ref moves, so it is read after it.
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

// afterMark finds the last line of a log with the mark, and what the ref held
// when it moved the next time; that is empty when it has not. The line itself
// proves nothing: a crash may have come between it and the move. What a line
// says of the old value was true: git has it from the ref that it has locked.
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

// inReflog looks for an id that the ref moved away from, in lines of "<old>
// <new> <who and when>\t<why>". A new value alone proves nothing: a crash may
// have come between the line and the move. A line that was cut off is passed
// over.
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
