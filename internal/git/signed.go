package git

import (
	"context"
	"fmt"

	"svc/internal/git/object"
)

// Signed is the signature of an object, in its armor, and the signed content.
type Signed = object.Signed

// SignedObject returns the signature of a commit or annotated tag. It returns
// ErrNotFound, also if there is no signature.
func (r Repo) SignedObject(ctx context.Context, id OID) (*Signed, error) {
	o, err := r.Object(ctx, id)
	if err != nil {
		return nil, err
	}
	var s *Signed
	switch o.Type {
	case TypeCommit:
		s = object.SignedCommit(o.Content)
	case TypeTag:
		s = object.SignedTag(o.Content)
	}
	if s == nil {
		return nil, fmt.Errorf("signature of %s: %w", id, ErrNotFound)
	}
	return s, nil
}
