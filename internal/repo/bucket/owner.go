package bucket

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"strings"

	"svc/internal/blob"
	"svc/internal/errs"
)

// ownerObject is the name of the object with the ID of the instance to which the objects of a
// storage belong.
const ownerObject = "owner"

// own returns an error if the objects of the storage belong to another instance, for example
// the original of a copied instance: each would delete the objects of the other.
func (s *Storage) own(ctx context.Context) error {
	if s.owned.Load() {
		return nil
	}
	owner, err := findOwner(ctx, s.DB, s.Name, rand.Text())
	if err != nil {
		return fmt.Errorf("find owner of storage %s: %w", s.Name, err)
	}
	key := s.prefix() + ownerObject
	in, err := s.Store.GetRange(ctx, key, 0, 100)
	if errs.Is(err, errs.KindNotFound) {
		_, err = s.Store.Put(ctx, key, strings.NewReader(owner), blob.Options{})
		s.owned.Store(err == nil)
		return err
	}
	if err != nil {
		return err
	}
	defer in.Close()
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	if string(text) != owner {
		return fmt.Errorf("storage %s: the objects below %s belong to another instance: use another bucket or prefix", s.Name, s.prefix())
	}
	s.owned.Store(true)
	return nil
}
