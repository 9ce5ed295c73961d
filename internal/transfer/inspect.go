package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"

	"svc/internal/errs"
)

// digest stands for the address of a person.
type digest = [sha256.Size]byte

// inspection takes nothing from a file but the people in it.
type inspection struct {
	people map[digest]int64 // who they are here; 0 while that is not known
	most   int              // how many there may be
}

func (*inspection) begin(*manifest) error { return nil }

func (*inspection) file(context.Context, part, string, io.Reader) error { return nil }

func (*inspection) end(context.Context, part) error { return nil }

func (i *inspection) row(_ context.Context, _ part, row any) error {
	switch row := row.(type) {
	case *memberRow:
		return i.note(&row.personRow)
	case *boardRow:
		if err := i.note(row.Assignee); err != nil {
			return err
		}
		for _, l := range row.Lists {
			if err := i.note(l.Assignee); err != nil {
				return err
			}
		}
	}
	return nil
}

func (i *inspection) note(p *personRow) error {
	d, ok, err := p.digest()
	if err != nil || !ok {
		return err
	}
	if i.people[d] = 0; len(i.people) > i.most {
		return errs.Invalid("the file names more than %d people", i.most)
	}
	return nil
}

// digest is that of the address of a person; ok is false for one without.
func (p *personRow) digest() (d digest, ok bool, err error) {
	if p == nil || p.Email == "" {
		return d, false, nil
	}
	if n, err := hex.Decode(d[:], []byte(p.Email[:min(len(p.Email), 2*len(d))])); err != nil || n != len(d) || len(p.Email) != 2*n {
		return d, false, errs.Invalid("email_sha256 is not the SHA-256 of an address")
	}
	return d, true, nil
}
