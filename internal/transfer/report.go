package transfer

import (
	"strings"

	"svc/internal/transfer/archive"
)

// Report describes what came of an import.
type Report struct {
	Imported archive.Totals   // what was in the file
	Missing  []Missing        // what of it could not be taken over, up to maxMissing
	Lost     map[string]int64 // how much of each Thing could not
}

// Missing is something that could not be taken over.
type Missing struct {
	Thing string // member, board or user
	Group string // its path below the group at the top; empty for that and in a project
	Name  string
	Why   string
}

// The things that may not find their place.
const (
	memberThing = "member"
	boardThing  = "board"
	userThing   = "user" // of a project: what they did is that of the ghost user
)

// maxMissing is how much a report lists one by one.
const maxMissing = 1000

func (r *Report) add(m Missing) {
	if r.Lost == nil {
		r.Lost = map[string]int64{}
	}
	r.Lost[m.Thing]++
	if len(r.Missing) < maxMissing {
		r.Missing = append(r.Missing, m)
	}
}

// count counts something without listing it.
func (r *Report) count(thing string) {
	if r.Lost == nil {
		r.Lost = map[string]int64{}
	}
	r.Lost[thing]++
}

// addAll adds what another report has.
func (r *Report) addAll(other *Report) {
	for thing, n := range other.Lost {
		if r.Lost == nil {
			r.Lost = map[string]int64{}
		}
		r.Lost[thing] += n
	}
	r.Missing = append(r.Missing, other.Missing[:min(len(other.Missing), maxMissing-len(r.Missing))]...)
}

// cutName bounds a name from a file, which may have any length.
func cutName(name string) string { return cutTo(name, 255) }

// cutTo bounds a text in bytes.
func cutTo(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// More is how much the report does not list.
func (r *Report) More() int64 {
	more := -int64(len(r.Missing))
	for _, n := range r.Lost {
		more += n
	}
	return max(more, 0)
}
