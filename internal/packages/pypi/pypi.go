// Package pypi checks what Python clients send: names, versions and file names.
package pypi

import (
	"regexp"
	"strings"

	"svc/internal/errs"
)

// Limits in bytes.
const (
	maxName    = 255
	maxVersion = 255
	maxRange   = 255
)

var (
	namePattern    = regexp.MustCompile(`\A[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\z`)
	versionPattern = regexp.MustCompile(`(?i)\Av?(?:[0-9]+!)?[0-9]+(?:\.[0-9]+)*(?:[-_.]?(?:a|b|c|rc|alpha|beta|pre|preview)[-_.]?[0-9]*)?(?:-[0-9]+|[-_.]?(?:post|rev|r)[-_.]?[0-9]*)?(?:[-_.]?dev[-_.]?[0-9]*)?(?:\+[a-z0-9]+(?:[-_.][a-z0-9]+)*)?\z`)
	separators     = regexp.MustCompile(`[-_.]+`)
	filePattern    = regexp.MustCompile(`\A[A-Za-z0-9][A-Za-z0-9._+!-]*\z`)
)

// suffixes are those of distribution files.
var suffixes = []string{".whl", ".tar.gz", ".zip", ".tar.bz2", ".tar.xz", ".tgz", ".egg"}

// Normalize returns a name as clients compare it.
func Normalize(name string) string { return strings.ToLower(separators.ReplaceAllString(name, "-")) }

// CheckName returns Invalid for a name that no project can have.
func CheckName(name string) error {
	if len(name) > maxName || !namePattern.MatchString(name) {
		return errs.Invalid("Name is invalid")
	}
	return nil
}

// CheckVersion returns Invalid for a version that tools do not understand.
func CheckVersion(version string) error {
	if len(version) > maxVersion || !versionPattern.MatchString(version) {
		return errs.Invalid("Version is invalid")
	}
	return nil
}

// CheckFile returns Invalid for the name of a file that is not a distribution of a
// package.
func CheckFile(file, name string) error {
	if len(file) > maxName || !filePattern.MatchString(file) {
		return errs.Invalid("File name is invalid")
	}
	known := false
	for _, suffix := range suffixes {
		known = known || strings.HasSuffix(strings.ToLower(file), suffix)
	}
	if !known || !strings.HasPrefix(Normalize(file), Normalize(name)+"-") {
		return errs.Invalid("File name is not that of a distribution of the package")
	}
	return nil
}

// CheckRange returns Invalid for a requires_python that is too long or has control
// characters. Clients evaluate it.
func CheckRange(text string) error {
	if len(text) > maxRange || strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return errs.Invalid("requires_python is invalid")
	}
	return nil
}
