package git

import "context"

// WasAt reports whether a ref has an ID, or had it before according to its reflog.
// For ZeroOID it reports whether the ref is or was missing.
//
// The reflog is limited by housekeeping and is deleted with its ref: for a deleted
// ref only ZeroOID is known, and for a recreated ref only its later values. It
// returns ErrBadRef and ErrNoRepository.
func (r Repo) WasAt(ctx context.Context, ref string, id OID) (bool, error) {
	return r.refs.WasAt(ctx, ref, id)
}

// Happened reports whether an update with a mark was made, even if the ref has
// moved since. For a deletion it only checks that the ref is missing now, because
// the reflog is deleted with it. It returns ErrBadRef and ErrNoRepository.
func (r Repo) Happened(ctx context.Context, u Update, mark string) (bool, error) {
	return r.refs.Happened(ctx, u, mark)
}

// Reclaim takes over the repository of a server that was killed: it waits for its
// processes to exit and removes their locks. The caller must know that no other
// server uses the repository. It returns ErrBusy if a process does not exit, and
// ErrNoRepository.
func (r Repo) Reclaim(ctx context.Context) error {
	if r.backend != nil {
		return r.refs.Exists(ctx) // processes change only the cache
	}
	return r.files.Reclaim(ctx)
}
