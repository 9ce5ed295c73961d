// Package backup writes and reads backup files. It does not depend on what is
// backed up.
//
// The file is a tar file: an entry with the format version, the entries of the
// backup, SHA256SUMS with a line for each of these in the same order, and a
// manifest. It can be written in one pass, also to a pipe, and can be unpacked
// with tar.
package backup

import (
	"archive/tar"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"
)

// Format is the version of the file that this program writes and reads.
const Format = 1

// Manifest stands at the end of a backup, and says what it is of.
type Manifest struct {
	Format  int    `json:"format"`
	Program string `json:"program"` // the version that made it
	Schema  int64  `json:"schema"`  // the version of the database
	// PendingMigrations are migrations below Schema that had not run.
	PendingMigrations []int64   `json:"pending_migrations,omitempty"`
	Database          string    `json:"database"`
	CreatedAt         time.Time `json:"created_at"` // the moment of the database
	Storages          []string  `json:"storages"`
	Key               bool      `json:"key"`     // the instance key is in it
	Entries           int64     `json:"entries"` // before the sums
	Bytes             int64     `json:"bytes"`   // of these
	Sum               string    `json:"sum"`     // SHA-256 of SHA256SUMS
	// Parts are the directories of the backup.
	Parts map[string]Part `json:"parts"`
	// Missing are things that the database names and that were not there, and
	// MissingMore is how many there are beyond these.
	Missing     []string `json:"missing,omitempty"`
	MissingMore int      `json:"missing_more,omitempty"`
}

// Part is a directory of a backup.
type Part struct {
	Entries int64 `json:"entries"`
	Bytes   int64 `json:"bytes"`
}

// plus counts an entry of a part.
func plus(parts map[string]Part, name string, size int64) {
	root, _, _ := strings.Cut(name, "/")
	p := parts[root]
	parts[root] = Part{p.Entries + 1, p.Bytes + size}
}

// maxMissing is how many things are named that are missing.
const maxMissing = 1000

// Lacks notes that something is missing.
func (m *Manifest) Lacks(what string) {
	if len(m.Missing) == maxMissing {
		m.MissingMore++
		return
	}
	m.Missing = append(m.Missing, what)
}

const (
	formatName   = "svc-backup"
	sumsName     = "SHA256SUMS"
	manifestName = "manifest.json"

	recordPrefix = "SVC." // of what an entry tells beside its content
	maxManifest  = 16 << 20
	maxFormat    = 1 << 10
	maxName      = 4 << 10
)

// Meta is what an entry tells beside its content, in a few short words.
type Meta map[string]string

// checkName refuses names that lead anywhere, or that would break a line of
// SHA256SUMS.
func checkName(name string) error {
	bad := len(name) > maxName || !filepath.IsLocal(name) || path.Clean(name) != name || !strings.Contains(name, "/") ||
		!utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' })
	if bad {
		return fmt.Errorf("%.200q is not a valid entry name", name)
	}
	return nil
}

// errNotWhole is the fault of a file that was cut off.
var errNotWhole = errors.New("it is not whole: it was cut off, or is no backup")

// meta takes what an entry tells beside its content from its header. It
// refuses whatever the writer does not write, such as files with holes.
func meta(head *tar.Header) (Meta, error) {
	m := Meta{}
	for key, value := range head.PAXRecords {
		name, ours := strings.CutPrefix(key, recordPrefix)
		switch {
		case ours:
			m[name] = value
		case key != "path" && key != "size":
			return nil, fmt.Errorf("%.200q has the record %.100q", head.Name, key)
		}
	}
	return m, nil
}
