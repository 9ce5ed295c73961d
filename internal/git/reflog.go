package git

import "context"

// WasAt reports whether a ref has an ID, or had it before according to its reflog.
// For ZeroOID it reports whether the ref is or was missing.
//
// The log reaches back as far as housekeeping lets it, and goes with its ref:
// of one that was deleted only ZeroOID is known, of one that was made again
// only what came after. It returns ErrBadRef and ErrNoRepository.
func (r Repo) WasAt(ctx context.Context, ref string, id OID) (bool, error) {
	return r.files.WasAt(ctx, ref, id)
}

// Happened reports whether an update that was tried with a mark was made, also
// when the ref has moved on. For a deletion it can only check that the ref is
// missing now, because the reflog is deleted with it. It returns ErrBadRef and
// ErrNoRepository.
func (r Repo) Happened(ctx context.Context, u Update, mark string) (bool, error) {
	return r.files.Happened(ctx, u, mark)
}

// Reclaim takes the repository over from a server that was killed: it waits
// for the processes that it left to end, and removes their locks. It is for a
// caller who knows that no other server uses the repository. ErrBusy when a
// process does not end, ErrNoRepository.
func (r Repo) Reclaim(ctx context.Context) error { return r.files.Reclaim(ctx) }
