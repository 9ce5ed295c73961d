package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"

	"svc/internal/errs"
)

// Digest is the digest of the address of a person.
type Digest = [sha256.Size]byte

// UserList are the users that a file names.
type UserList struct {
	Digests map[Digest]int64 // their IDs here; 0 if unknown
	List    []PersonRow      // of the file of a project, in order
}

// Inspect reads a whole file and returns its users, with 0 as their IDs. Invalid for
// a file that has another format.
func Inspect(ctx context.Context, in io.Reader, k Kind, progress func(read int64)) (*UserList, error) {
	look := &inspection{people: UserList{Digests: map[Digest]int64{}}, most: usualLimits().people}
	_, err := Read(ctx, in, k, look, progress)
	return &look.people, err
}

// inspection reads only the users of a file.
type inspection struct {
	people UserList
	most   int // maximum number
	size   int // bytes of names
}

func (*inspection) Begin(*Manifest) error { return nil }

func (*inspection) File(context.Context, Part, string, int64, io.Reader) error { return nil }

func (*inspection) End(context.Context, Part) error { return nil }

func (i *inspection) Row(_ context.Context, _ Part, row any, _ int) error {
	switch row := row.(type) {
	case *MemberRow:
		return i.note(&row.PersonRow)
	case *PersonRow:
		// They are all held in memory.
		if len(row.Username) > maxName || len(row.Name) > maxName {
			return errs.Invalid("a name has more than %d bytes", maxName)
		}
		if len(i.people.List) == i.most {
			return errs.Invalid("the file lists more than %d users", i.most)
		}
		if i.size += len(row.Username) + len(row.Name); i.size > maxNames {
			return errs.Invalid("the names of users have more than %d bytes", maxNames)
		}
		i.people.List = append(i.people.List, *row)
		return i.note(row)
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

// maxName is the maximum length in bytes of the name of a user.
const maxName = 1024

// maxNames is the maximum length in bytes of the names of all users.
const maxNames = 64 << 20

func (i *inspection) note(p *PersonRow) error {
	d, ok, err := p.Digest()
	if err != nil || !ok {
		return err
	}
	if i.people.Digests[d] = 0; len(i.people.Digests) > i.most {
		return errs.Invalid("the file lists more than %d users", i.most)
	}
	return nil
}

// Digest returns the digest of the address of a person; ok is false if there is
// none.
func (p *PersonRow) Digest() (d Digest, ok bool, err error) {
	if p == nil || p.Email == "" {
		return d, false, nil
	}
	if n, err := hex.Decode(d[:], []byte(p.Email[:min(len(p.Email), 2*len(d))])); err != nil || n != len(d) || len(p.Email) != 2*n {
		return d, false, errs.Invalid("email_sha256 is not the SHA-256 of an address")
	}
	return d, true, nil
}
