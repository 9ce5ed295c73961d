package githttp

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"svc/internal/errs"
	"svc/internal/lfs"
)

// lockJSON is the representation of a lock.
//
// See https://github.com/git-lfs/git-lfs/blob/main/docs/api/locking.md.
type lockJSON struct {
	ID       string    `json:"id"`
	Path     string    `json:"path"`
	LockedAt time.Time `json:"locked_at"`
	Owner    lockOwner `json:"owner"`
}

type lockOwner struct {
	Name string `json:"name"`
}

func toLock(l *lfs.Lock) lockJSON {
	return lockJSON{strconv.FormatInt(l.ID, 10), l.Path, l.LockedAt.UTC().Truncate(time.Second), lockOwner{l.Owner}}
}

type lockResponse struct {
	Lock    lockJSON `json:"lock"`
	Message string   `json:"message,omitempty"`
}

type createLockRequest struct {
	Path string  `json:"path"`
	Ref  *lfsRef `json:"ref"`
}

func (x *lfsExchange) createLock() error {
	var in createLockRequest
	if err := x.read(&in); err != nil {
		return err
	}
	if err := x.open(lfs.Upload); err != nil {
		return err
	}
	l, err := x.LFS.Lock(x.r.Context(), x.by, x.p, in.Path)
	if errs.Is(err, errs.KindConflict) && l != nil {
		refused, _ := errs.As(err)
		return x.reply(http.StatusConflict, lockResponse{toLock(l), refused.Text})
	}
	if err != nil {
		return err
	}
	return x.reply(http.StatusCreated, lockResponse{Lock: toLock(l)})
}

type listLocksResponse struct {
	Locks      []lockJSON `json:"locks"`
	NextCursor string     `json:"next_cursor,omitempty"`
}

// errCursor is the error for a cursor, ID or limit that is not a number.
var errCursor = errors.New("not a number")

// number parses a number; 0 for an empty text.
func number(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, errs.Unprocessable("The cursor, ID or limit is invalid.").Because(errCursor)
	}
	return n, nil
}

func (x *lfsExchange) listLocks() error {
	if err := x.open(lfs.Download); err != nil {
		return err
	}
	query := x.r.URL.Query()
	f := lfs.LockFilter{Path: query.Get("path")}
	id, err := number(query.Get("id"))
	if err != nil {
		return x.reply(http.StatusOK, listLocksResponse{Locks: []lockJSON{}}) // no lock has such an ID
	}
	from, err := number(query.Get("cursor"))
	if err != nil {
		return err
	}
	limit, err := number(query.Get("limit"))
	if err != nil {
		return err
	}
	f.ID, f.From, f.Limit = id, from, int(min(limit, lfs.MaxLockPage))
	list, next, err := x.LFS.Locks(x.r.Context(), x.p, f)
	if err != nil {
		return err
	}
	out := listLocksResponse{Locks: make([]lockJSON, len(list)), NextCursor: cursor(next)}
	for i, l := range list {
		out.Locks[i] = toLock(l)
	}
	return x.reply(http.StatusOK, out)
}

func cursor(next int64) string {
	if next == 0 {
		return ""
	}
	return strconv.FormatInt(next, 10)
}

type verifyLocksRequest struct {
	Ref    *lfsRef `json:"ref"`
	Cursor string  `json:"cursor"`
	Limit  int64   `json:"limit"`
}

type verifyLocksResponse struct {
	Ours       []lockJSON `json:"ours"`
	Theirs     []lockJSON `json:"theirs"`
	NextCursor string     `json:"next_cursor,omitempty"`
}

func (x *lfsExchange) verifyLocks() error {
	var in verifyLocksRequest
	if err := x.read(&in); err != nil {
		return err
	}
	if err := x.open(lfs.Upload); err != nil {
		return err
	}
	from, err := number(in.Cursor)
	if err != nil {
		return err
	}
	list, next, err := x.LFS.Locks(x.r.Context(), x.p, lfs.LockFilter{From: from, Limit: int(max(0, min(in.Limit, lfs.MaxLockPage)))})
	if err != nil {
		return err
	}
	out := verifyLocksResponse{Ours: []lockJSON{}, Theirs: []lockJSON{}, NextCursor: cursor(next)}
	for _, l := range list {
		if x.by.Deploy == nil && x.by.Is(l.UserID) {
			out.Ours = append(out.Ours, toLock(l))
		} else {
			out.Theirs = append(out.Theirs, toLock(l))
		}
	}
	return x.reply(http.StatusOK, out)
}

type unlockRequest struct {
	Force bool    `json:"force"`
	Ref   *lfsRef `json:"ref"`
}

func (x *lfsExchange) unlock(id string) error {
	var in unlockRequest
	if err := x.read(&in); err != nil {
		return err
	}
	if err := x.open(lfs.Upload); err != nil {
		return err
	}
	n, err := number(id)
	if err != nil {
		return errs.NotFound("Lock")
	}
	l, err := x.LFS.Unlock(x.r.Context(), x.by, x.p, n, in.Force)
	if errs.Is(err, errs.KindForbidden) && l != nil {
		refused, _ := errs.As(err)
		return x.reply(http.StatusForbidden, lockResponse{toLock(l), refused.Text})
	}
	if err != nil {
		return err
	}
	return x.reply(http.StatusOK, lockResponse{Lock: toLock(l)})
}
