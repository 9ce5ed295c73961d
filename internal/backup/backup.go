// Package backup writes and reads backup files, independent of their content.
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

// Manifest is the last entry of a backup and describes the backup.
type Manifest struct {
	Format  int    `json:"format"`
	Program string `json:"program"` // version of svc
	Schema  int64  `json:"schema"`  // version of the database schema
	// PendingMigrations are migrations below Schema that had not run.
	PendingMigrations []int64   `json:"pending_migrations,omitempty"`
	Database          string    `json:"database"`
	CreatedAt         time.Time `json:"created_at"` // time of the snapshot of the database
	Storages          []string  `json:"storages"`
	Key               bool      `json:"key"`     // whether the instance key is included
	Entries           int64     `json:"entries"` // number of entries before SHA256SUMS
	Bytes             int64     `json:"bytes"`   // total size of these entries
	Sum               string    `json:"sum"`     // SHA-256 of SHA256SUMS
	// Parts are the directories of the backup.
	Parts map[string]Part `json:"parts"`
	// Missing lists objects that the database refers to but that did not exist;
	// MissingMore is the number of further ones.
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

// maxMissing limits Manifest.Missing.
const maxMissing = 1000

// Lacks records that something is missing.
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

	recordPrefix = "SVC." // prefix of the PAX records with Meta
	maxManifest  = 16 << 20
	maxFormat    = 1 << 10
	maxName      = 4 << 10
)

// Meta is short metadata of an entry. It is stored in PAX records.
type Meta map[string]string

// checkName rejects names that lead out of the directory of an entry, or that would
// break a line of SHA256SUMS.
func checkName(name string) error {
	bad := len(name) > maxName || !filepath.IsLocal(name) || path.Clean(name) != name || !strings.Contains(name, "/") ||
		!utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' })
	if bad {
		return fmt.Errorf("%.200q is not a valid entry name", name)
	}
	return nil
}

// errNotWhole is the error of a truncated file.
var errNotWhole = errors.New("the file is truncated or not a backup")

// meta reads the metadata from the header of an entry. It rejects all other PAX
// records, such as those of sparse files.
func meta(head *tar.Header) (Meta, error) {
	m := Meta{}
	for key, value := range head.PAXRecords {
		name, ours := strings.CutPrefix(key, recordPrefix)
		switch {
		case ours:
			m[name] = value
		case key != "path" && key != "size":
			return nil, fmt.Errorf("%.200q has the unknown PAX record %.100q", head.Name, key)
		}
	}
	return m, nil
}
