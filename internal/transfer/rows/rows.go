// Package rows reads the rows of a project for an export, and writes those of an
// import. It checks no permissions: the caller requires Maintainer for exports, and
// imports into a draft. Nothing that it writes causes events, emails, webhooks or
// to-do items. It belongs to package transfer.
package rows

import (
	"time"

	"svc/internal/db"
	"svc/internal/transfer/archive"
)

// Source reads the rows of a project.
type Source struct {
	DB        db.Q
	ProjectID int64
	GhostID   int64

	people map[int64]archive.Person // by the IDs of users
	order  []int64                  // the IDs, in the order of their first use
	issues int64                    // highest number of an issue of the export
	merges int64                    // highest number of a merge request of the export
}

// batch is the number of rows that are read at once. Each can have a text of 1 MiB.
const batch = 50

// Person returns the number of a user in the file.
func (s *Source) Person(id *int64) archive.Person {
	if id == nil || *id == s.GhostID {
		return 0
	}
	if n, ok := s.people[*id]; ok {
		return n
	}
	if s.people == nil {
		s.people = map[int64]archive.Person{}
	}
	s.order = append(s.order, *id)
	n := archive.Person(len(s.order))
	s.people[*id] = n
	return n
}

func (s *Source) persons(ids []*int64) []archive.Person {
	list := make([]archive.Person, len(ids))
	for i, id := range ids {
		list[i] = s.Person(id)
	}
	return list
}

// UserIDs returns the IDs of the users of the file, in the order of their numbers.
func (s *Source) UserIDs() []int64 { return s.order }

func utcOrNull(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	at := t.UTC()
	return &at
}
