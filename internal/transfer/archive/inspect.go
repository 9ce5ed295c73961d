package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"

	"svc/internal/errs"
)

// Digest stands for the address of a person.
type Digest = [sha256.Size]byte

// Users reads a whole file, and gives who is named in it: each is 0, which
// stands for no one. What is wrong with the file is Invalid.
func Users(ctx context.Context, in io.Reader, progress func(read int64)) (map[Digest]int64, error) {
	look := &inspection{people: map[Digest]int64{}, most: usualLimits().people}
	_, err := Read(ctx, in, look, progress)
	return look.people, err
}

// inspection takes nothing from a file but the users in it.
type inspection struct {
	people map[Digest]int64 // who they are here; 0 while that is not known
	most   int              // how many there may be
}

func (*inspection) Begin(*Manifest) error { return nil }

func (*inspection) File(context.Context, Part, string, io.Reader) error { return nil }

func (*inspection) End(context.Context, Part) error { return nil }

func (i *inspection) Row(_ context.Context, _ Part, row any, _ int) error {
	switch row := row.(type) {
	case *MemberRow:
		return i.note(&row.PersonRow)
	case *BoardRow:
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

func (i *inspection) note(p *PersonRow) error {
	d, ok, err := p.Digest()
	if err != nil || !ok {
		return err
	}
	if i.people[d] = 0; len(i.people) > i.most {
		return errs.Invalid("the file lists more than %d users", i.most)
	}
	return nil
}

// Digest is that of the address of a person; ok is false for one without.
func (p *PersonRow) Digest() (d Digest, ok bool, err error) {
	if p == nil || p.Email == "" {
		return d, false, nil
	}
	if n, err := hex.Decode(d[:], []byte(p.Email[:min(len(p.Email), 2*len(d))])); err != nil || n != len(d) || len(p.Email) != 2*n {
		return d, false, errs.Invalid("email_sha256 is not the SHA-256 of an address")
	}
	return d, true, nil
}
