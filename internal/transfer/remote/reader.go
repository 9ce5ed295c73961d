package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"svc/internal/transfer/archive"
)

// Output takes what is read.
type Output interface {
	// Row adds a row of a part of an export file.
	Row(p archive.Part, row any) error
	// File adds a file of a part; name is its name in the directory of the part, or the
	// end of its name. The names of a directory must ascend: numbers by value, all others
	// alphabetically. There is no file unless fill returns true.
	File(p archive.Part, name string, fill func(io.Writer) (bool, error)) error
	// Next begins the next group of an export of groups.
	Next()
}

// Skipped is an object or a relation that is not imported.
type Skipped struct {
	Relation string // "issues"
	Name     string // which one; empty for all, or if it has no name
	Path     string // of its page, below the URL of the source; empty if it has none
	Why      string
}

// Counts are the numbers of a relation.
type Counts struct {
	Source  int64 `json:"source"` // that the source has
	Fetched int64 `json:"fetched"`
}

// Step reads some parts. A step that was interrupted is read again; those before it are
// not.
type Step struct {
	Name string
	Run  func(ctx context.Context, out Output) error
}

// Person is a user of the source.
type Person struct {
	ID       int64  `json:"id"`
	Username string `json:"username,omitempty"`
	Name     string `json:"name,omitempty"`
}

// File is an uploaded file that a text links to.
type File struct {
	Secret string `json:"secret"`
	Name   string `json:"name"`
}

// State is what later steps need of earlier ones.
type State struct {
	ID         int64             `json:"id"` // of the group or project at the source
	Name       string            `json:"name"`
	Path       string            `json:"path"` // last segment
	FullPath   string            `json:"full_path"`
	Branch     string            `json:"branch,omitempty"`      // default branch
	WikiBranch string            `json:"wiki_branch,omitempty"` // of the wiki
	Users      []Person          `json:"users,omitempty"`       // by their numbers, from 1
	Files      []File            `json:"files,omitempty"`
	Groups     []Place           `json:"groups,omitempty"`   // of a group: itself and its subgroups, by their numbers
	Projects   []Place           `json:"projects,omitempty"` // of a group
	Counts     map[string]Counts `json:"counts,omitempty"`
}

// Place is a group or project at the source.
type Place struct {
	ID         int64  `json:"id"`
	Path       string `json:"path"` // full path
	Name       string `json:"name"`
	Visibility string `json:"visibility"`
}

// Reader reads a group or project. Its steps run one after the other.
type Reader struct {
	*Client
	*State
	Members bool // read them
	// Digests has the addresses of users read, as far as the token shows them.
	Digests bool
	// Settings converts the fields of a project in the API to its importable
	// settings.
	Settings func(fields map[string]json.RawMessage) json.RawMessage
	// GroupSettings is Settings for a group.
	GroupSettings func(fields map[string]json.RawMessage) archive.SettingsRow
	// Rules converts the push rules of a project in the API.
	Rules func(fields map[string]json.RawMessage) json.RawMessage
	// Skip is called with what is not imported.
	Skip func(Skipped)

	people map[int64]archive.Person // by ID
	files  map[string]bool          // secrets
	held   map[string]int           // number of names in sets, by relation
	full   map[string]bool          // relations of which there is more than is held
}

// names is a set of names of the source, which finds those that a list has twice. It
// holds digests, because a name can have any length.
type names map[[sha256.Size]byte]bool

func (n names) has(name string) bool { return n[sha256.Sum256([]byte(name))] }

// isNew adds a name to a set. It is false for a name that the set has, and for those
// after the maximum number of a relation, which is reported.
func (r *Reader) isNew(to names, relation, name string) bool {
	key := sha256.Sum256([]byte(name))
	if to[key] {
		return false
	}
	if r.held[relation] >= r.limits.Names {
		r.addCounts(relation, Counts{Source: 1})
		r.tooMany(relation, "The source has more than %d of them. The others are left out.", r.limits.Names)
		return false
	}
	if r.held == nil {
		r.held = map[string]int{}
	}
	r.held[relation]++
	to[key] = true
	return true
}

// tooMany reports, once, that there is more of a relation than is held in memory.
func (r *Reader) tooMany(relation, format string, args ...any) {
	if r.full[relation] {
		return
	}
	if r.full == nil {
		r.full = map[string]bool{}
	}
	r.full[relation] = true
	r.Skip(Skipped{Relation: relation, Why: fmt.Sprintf(format, args...)})
}

// person returns the number of a user. 0 is no one: the account is deleted.
func (r *Reader) person(u *userJSON) archive.Person {
	if u == nil || u.ID <= 0 || u.Username == "ghost" {
		return 0
	}
	return r.numberOf(Person{u.ID, cut(u.Username, maxName), cut(u.Name, maxName)})
}

func (r *Reader) numberOf(p Person) archive.Person {
	if r.people == nil {
		r.people = map[int64]archive.Person{}
		for n, known := range r.Users {
			r.people[known.ID] = archive.Person(n + 1)
		}
	}
	if n, ok := r.people[p.ID]; ok {
		if known := &r.Users[n-1]; known.Username == "" {
			*known = p
		}
		return n
	}
	if len(r.Users) >= r.limits.Names {
		r.tooMany("users", "The source names more than %d users. What the others did belongs to the ghost user.", r.limits.Names)
		return 0
	}
	r.Users = append(r.Users, p)
	n := archive.Person(len(r.Users))
	r.people[p.ID] = n
	return n
}

// maxName is the maximum size of a name in an export file, in bytes.
const maxName = 255

func (r *Reader) persons(list []userJSON) []archive.Person {
	out := []archive.Person{}
	for i := range list {
		if n := r.person(&list[i]); n != 0 {
			out = append(out, n)
		}
	}
	return out
}

// cut bounds a text that the source sent, in bytes.
func cut(text string, most int) string {
	text = clean(text)
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}

// clean removes what a database does not store.
func clean(text string) string {
	if strings.IndexByte(text, 0) >= 0 {
		text = strings.ReplaceAll(text, "\x00", "")
	}
	return text
}

// text returns a Markdown text, and notes the files that it links to.
func (r *Reader) text(text string) string {
	text = clean(text)
	if len(text) > maxText || !strings.Contains(text, "/uploads/") {
		return text // a text that is too long is refused
	}
	if r.files == nil {
		r.files = map[string]bool{}
		for _, f := range r.Files {
			r.files[f.Secret] = true
		}
	}
	for _, found := range uploadLink.FindAllStringSubmatch(text, -1) {
		name, err := url.PathUnescape(found[2])
		if err != nil || r.files[found[1]] {
			continue
		}
		if len(r.Files) >= maxFiles {
			r.tooMany("uploads", "Texts link to more than %d uploaded files. The others are left out.", maxFiles)
			break
		}
		r.files[found[1]] = true
		r.Files = append(r.Files, File{found[1], name})
	}
	return text
}

// maxFiles is the maximum number of uploaded files, and maxFileName that of the bytes of
// a name. Both are held in memory.
const (
	maxFiles    = 50_000
	maxFileName = 500
)

var uploadLink = regexp.MustCompile(`/uploads/([0-9a-f]{32})/([^\s()<>"'\]/]{1,500})`)

// count notes how many of a relation were read.
func (r *Reader) count(relation string, fetched int) {
	r.addCounts(relation, Counts{int64(fetched), int64(fetched)})
}

func (r *Reader) addCounts(relation string, c Counts) {
	if r.Counts == nil {
		r.Counts = map[string]Counts{}
	}
	now := r.Counts[relation]
	now.Source += c.Source
	now.Fetched += c.Fetched
	r.Counts[relation] = now
}

// bad returns the function for items of a list that cannot be read.
func (r *Reader) bad(relation, name string) func(why string) {
	return func(why string) {
		r.addCounts(relation, Counts{Source: 1})
		r.Skip(Skipped{Relation: relation, Name: name, Why: "The answer of the source cannot be read: " + why})
	}
}

// forgive returns nil for an error of a relation that the source does not have, or not
// for the token. The latter is reported. A source that has no issues, merge requests or
// comments to show is reported as well: other relations are missing in some versions.
func (r *Reader) forgive(relation string, err error) error {
	if !absent(err) {
		return err
	}
	if f := err.(*Failure); f.Status == 403 || slices.Contains([]string{"issues", "merge_requests", "notes"}, relation) {
		r.Skip(Skipped{Relation: relation, Why: f.Text})
	}
	return nil
}

// at returns a path of the API below the group or project.
func at(kind string, id int64, rest string) string { return "/" + kind + "/" + number(id) + rest }

// fanOut calls f for the numbers below n, a few at once, and returns the first error.
func fanOut(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	free := make(chan struct{}, parallel)
	for i := 0; i < n && ctx.Err() == nil; i++ {
		free <- struct{}{}
		running.Go(func() {
			defer func() { <-free }()
			if err := f(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	running.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// all reads a whole list, which belongs to one object and is short.
func all[T any](ctx context.Context, c *Client, path string, bad func(why string)) ([]T, error) {
	var items []T
	var mu sync.Mutex
	err := pages(ctx, c, path, url.Values{"per_page": {"100"}}, func() {}, func(page []T) error {
		items = append(items, page...)
		if len(items) > maxBelow {
			return fail("A list of the source has more than %d items.", maxBelow)
		}
		return nil
	}, func(why string) {
		mu.Lock()
		defer mu.Unlock()
		bad(why)
	})
	return items, err
}

// maxBelow is the maximum number of items of one object, which are held in memory.
const maxBelow = 20_000

// users writes the users whom other rows name.
func (r *Reader) users(ctx context.Context, out Output) error {
	const batch = 100
	for from := 0; from < len(r.Users); from += batch {
		part := r.Users[from:min(from+batch, len(r.Users))]
		r.Client.held.Store(0)
		digests := make([]string, len(part))
		err := fanOut(ctx, len(part), func(ctx context.Context, i int) error {
			if !r.Digests && part[i].Username != "" {
				return nil
			}
			u, err := one[userJSON](ctx, r.Client, at("users", part[i].ID, ""), nil)
			if err != nil {
				if absent(err) || isFailure(err) {
					return nil
				}
				return err
			}
			if part[i].Username == "" {
				part[i].Username, part[i].Name = cut(u.Username, maxName), cut(u.Name, maxName)
			}
			if r.Digests {
				digests[i] = digest(u)
			}
			return nil
		})
		if err != nil {
			return err
		}
		for i, p := range part {
			if p.Username == "" {
				p.Username = "user-" + number(p.ID)
			}
			if err := out.Row(archive.PersonPart, archive.PersonRow{Username: p.Username, Name: p.Name, Email: digests[i]}); err != nil {
				return err
			}
		}
	}
	return nil
}

// digest returns the digest of the confirmed address of a user: that which only
// administrators see, or the public one, which users choose of their confirmed ones.
//
// See https://docs.gitlab.com/api/users/#retrieve-a-user.
func digest(u userJSON) string {
	address := u.PublicEmail
	if u.Email != "" && u.ConfirmedAt != nil {
		address = u.Email
	}
	if address == "" || u.Bot || strings.Count(address, "@") != 1 {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.ToLower(address)))
	return hex.EncodeToString(sum[:])
}

func isFailure(err error) bool {
	f, ok := err.(*Failure)
	return ok && !f.Temporary && f.Status != 401
}

// utc returns a time as export files have it. A time zone can lead out of the years that
// JSON has; such a time is that of the import.
func utc(t time.Time) time.Time {
	if t = t.UTC(); t.Year() < 0 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}

func utcOrNull(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	at := utc(*t)
	return &at
}
