package transfer

import (
	"strings"

	"svc/internal/transfer/archive"
)

// Report is the result of an import.
type Report struct {
	Imported archive.Totals   // what was in the file
	Missing  []Missing        // objects that were not imported, up to maxMissing
	Lost     map[string]int64 // number of objects that were not imported, by Thing
}

// Missing is an object that was not imported.
type Missing struct {
	Thing string // member, board or user
	Group string // its path below the top-level group of the file; empty for that group and for projects
	Name  string
	Why   string
}

// The types of objects that may not be imported.
const (
	memberThing = "member"
	boardThing  = "board"
	userThing   = "user" // of a project: what they did is that of the ghost user
)

// maxMissing is the maximum number of objects that a report lists.
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

// count counts an object without listing it.
func (r *Report) count(thing string) {
	if r.Lost == nil {
		r.Lost = map[string]int64{}
	}
	r.Lost[thing]++
}

// addAll adds the content of another report.
func (r *Report) addAll(other *Report) {
	for thing, n := range other.Lost {
		if r.Lost == nil {
			r.Lost = map[string]int64{}
		}
		r.Lost[thing] += n
	}
	r.Missing = append(r.Missing, other.Missing[:min(len(other.Missing), maxMissing-len(r.Missing))]...)
}

// cutName truncates a name from a file, which may have any length.
func cutName(name string) string { return cutTo(name, 255) }

// cutTo truncates a text to a number of bytes.
func cutTo(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// More returns the number of objects that the report does not list.
func (r *Report) More() int64 {
	more := -int64(len(r.Missing))
	for _, n := range r.Lost {
		more += n
	}
	return max(more, 0)
}
