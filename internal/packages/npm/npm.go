// Package npm reads the documents that npm clients send and checks their names.
package npm

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"

	"svc/internal/errs"
)

// Limits of a document, in bytes and in members.
const (
	maxName     = 255
	maxNPMName  = 214
	maxVersion  = 255
	maxManifest = 1 << 20 // of one version, as it is sent
	maxKept     = 64 << 10
	maxVersions = 50_000
	maxTags     = 100
)

var (
	namePattern    = regexp.MustCompile(`\A(?:@[A-Za-z0-9~-][A-Za-z0-9._~-]*/)?[A-Za-z0-9~+_-][A-Za-z0-9._~+-]*\z`)
	versionPattern = regexp.MustCompile(`\A(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(?:-((?:[0-9A-Za-z-]+)(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?\z`)
	tagPattern     = regexp.MustCompile(`\A[A-Za-z0-9_.@+~-]+\z`)
	rangePattern   = regexp.MustCompile(`\A[v=]?[0-9xX*]+(\.[0-9xX*]+)*([-+].*)?\z`)
)

// CheckName returns Invalid for a name that no package can have.
func CheckName(name string) error {
	if len(name) > maxNPMName || !namePattern.MatchString(name) {
		return errs.Invalid("Package name is invalid")
	}
	return nil
}

// Scope returns the scope of a name, without the @; empty if it has none.
func Scope(name string) string {
	scope, _, ok := strings.Cut(name, "/")
	if !ok {
		return ""
	}
	return strings.TrimPrefix(scope, "@")
}

// CheckVersion returns Invalid for a version that is not a semantic version.
func CheckVersion(version string) error {
	if len(version) > maxVersion || !versionPattern.MatchString(version) {
		return errs.Invalid("Version is invalid")
	}
	return nil
}

// CheckTag returns Invalid for a tag that no version can have. A tag must not look
// like a version.
func CheckTag(tag string) error {
	if len(tag) > maxName || !tagPattern.MatchString(tag) || rangePattern.MatchString(tag) {
		return errs.Invalid("Tag is invalid")
	}
	return nil
}

// Document is a package with its versions, as a client sends it, without their
// content.
type Document struct {
	Name     string
	Rev      string
	Tags     map[string]string
	Versions int
}

// Read reads a document in bounded memory. It calls version with the manifest of
// each version, and attachment with the content of each file. Invalid if the text is
// not such a document.
func Read(r io.Reader, version func(name string, manifest []byte) error, attachment func(name string, content io.Reader) error) (Document, error) {
	d := Document{Tags: map[string]string{}}
	s := scanner{bufio.NewReaderSize(bodyReader{r}, 32<<10)}
	if _, err := s.r.Peek(1); err == io.EOF {
		return d, invalid(errEmpty)
	}
	err := s.object(func(member string) error {
		switch member {
		case "name":
			return s.string(&d.Name)
		case "_rev":
			return s.string(&d.Rev)
		case "dist-tags":
			return s.object(func(tag string) error {
				if len(d.Tags) >= maxTags {
					return errs.Invalid("a document may have %d tags", maxTags)
				}
				var to string
				err := s.string(&to)
				d.Tags[tag] = to
				return err
			})
		case "versions":
			return s.object(func(name string) error {
				if d.Versions++; d.Versions > maxVersions {
					return errs.Invalid("a package may have %d versions", maxVersions)
				}
				text, err := s.value(maxManifest)
				if err != nil {
					return err
				}
				return version(name, text)
			})
		case "_attachments":
			return s.object(func(name string) error { return s.attachment(name, attachment) })
		}
		return s.skip()
	})
	if err == nil {
		err = s.end()
	}
	return d, invalid(err)
}

// invalid converts errors in the document to Invalid.
func invalid(err error) error {
	for _, bad := range []error{errSyntax, errEmpty, errEnd, errObject, errBase64, errTooLong} {
		if errors.Is(err, bad) {
			return errs.Invalid("%s", bad.Error()).Because(err)
		}
	}
	return err
}

// string reads a string; null is the empty one.
func (s scanner) string(into *string) error {
	text, err := s.value(maxName * 6)
	if err != nil {
		return err
	}
	if json.Unmarshal(text, into) != nil {
		return errSyntax
	}
	return nil
}

// attachment reads a file.
func (s scanner) attachment(name string, attachment func(name string, content io.Reader) error) error {
	return s.object(func(member string) error {
		if member != "data" {
			return s.skip()
		}
		c, err := s.next()
		if err != nil {
			return err
		}
		if c != '"' {
			return errSyntax
		}
		data := &stringReader{s: s}
		if err := attachment(name, newBase64Reader(data)); err != nil {
			return err
		}
		if !data.done { // the decoder stops at the padding
			return s.restOfString(nil, 0)
		}
		return nil
	})
}

// Manifest is what the registry reads of the manifest of a version.
type Manifest struct {
	Name       string
	Version    string
	Deprecated string
	Shasum     string
	Integrity  string
	Kept       string // its JSON text, without what the server adds or clients do not need
}

// needed are the members that clients need to install a version.
var needed = []string{
	"name", "version", "dependencies", "devDependencies", "optionalDependencies", "peerDependencies", "peerDependenciesMeta", "bundleDependencies",
	"bundledDependencies", "bin", "engines", "os", "cpu", "libc", "hasInstallScript", "_hasShrinkwrap", "deprecated", "directories",
}

// dropped are the members that the server does not keep.
var dropped = []string{"dist", "readme", "readmeFilename", "_attachments", "_rev", "_id"}

// ParseManifest reads the manifest of a version. A long one is reduced to what
// clients need to install it. Invalid.
func ParseManifest(text []byte) (Manifest, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil || fields == nil {
		return Manifest{}, errs.Invalid("the manifest of a version is not an object")
	}
	var m Manifest
	var dist struct {
		Shasum    string `json:"shasum"`
		Integrity string `json:"integrity"`
	}
	for name, into := range map[string]any{"name": &m.Name, "version": &m.Version, "dist": &dist} {
		if raw, ok := fields[name]; ok {
			if err := json.Unmarshal(raw, into); err != nil {
				return Manifest{}, errs.Invalid("%s is invalid", name)
			}
		}
	}
	m.Deprecated = deprecated(fields["deprecated"])
	m.Shasum, m.Integrity = dist.Shasum, dist.Integrity
	for _, name := range dropped {
		delete(fields, name)
	}
	kept, err := json.Marshal(fields)
	if err == nil && len(kept) > maxKept {
		for name := range fields {
			if !slices.Contains(needed, name) {
				delete(fields, name)
			}
		}
		kept, err = json.Marshal(fields)
	}
	if err != nil {
		return Manifest{}, errs.Invalid("the manifest of a version is invalid")
	}
	if len(kept) > maxKept {
		return Manifest{}, errs.Invalid("the manifest of a version may have %d KiB", maxKept>>10)
	}
	m.Kept = string(kept)
	return m, nil
}

// maxDeprecated is the length of a deprecation message in bytes.
const maxDeprecated = 1024

// deprecated reads the message of a deprecated version. Old clients send true.
func deprecated(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		var flag bool
		if json.Unmarshal(raw, &flag) == nil && flag {
			return "This version is deprecated."
		}
	}
	return strings.ToValidUTF8(text[:min(len(text), maxDeprecated)], "")
}

// Deprecate returns the text of a kept manifest with another deprecation message; an
// empty one removes it.
func Deprecate(kept, message string) (string, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(kept), &fields); err != nil {
		return "", err
	}
	delete(fields, "deprecated")
	if message != "" {
		text, err := json.Marshal(message)
		if err != nil {
			return "", err
		}
		fields["deprecated"] = text
	}
	text, err := json.Marshal(fields)
	return string(text), err
}

// Compare orders versions by the precedence of semantic versioning. What is not a
// version comes first.
func Compare(a, b string) int {
	x, y := versionPattern.FindStringSubmatch(a), versionPattern.FindStringSubmatch(b)
	if x == nil || y == nil {
		switch {
		case x != nil:
			return 1
		case y != nil:
			return -1
		}
		return strings.Compare(a, b)
	}
	for i := 1; i <= 3; i++ {
		if c := compareNumbers(x[i], y[i]); c != 0 {
			return c
		}
	}
	return comparePre(x[4], y[4])
}

func compareNumbers(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// comparePre orders pre-releases; a release comes after them.
func comparePre(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == "":
		return 1
	case b == "":
		return -1
	}
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(x), len(y)) {
		nx, ny := isNumber(x[i]), isNumber(y[i])
		var c int
		switch {
		case nx && ny:
			c = compareNumbers(x[i], y[i])
		case nx:
			c = -1
		case ny:
			c = 1
		default:
			c = strings.Compare(x[i], y[i])
		}
		if c != 0 {
			return c
		}
	}
	return len(x) - len(y)
}

func isNumber(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return c < '0' || c > '9' })
}
