// Package filetemplate has templates of files for new projects: .gitignore files,
// licenses and Dockerfiles.
package filetemplate

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"svc/internal/errs"
)

//go:embed files
var files embed.FS

// Kind is a type of template.
type Kind string

// The kinds, named as in the API.
const (
	Gitignores  Kind = "gitignores"
	Dockerfiles Kind = "dockerfiles"
	Licenses    Kind = "licenses"
)

// Template is a template with its content.
type Template struct {
	Key     string
	Name    string
	Content string
}

// suffix has the file name suffix of each kind.
var suffix = map[Kind]string{Gitignores: ".gitignore", Dockerfiles: ".Dockerfile", Licenses: ".txt.gz"}

// Keys returns the keys of the templates of a kind, by name.
func Keys(kind Kind) []string {
	entries, err := files.ReadDir(path.Join("files", string(kind)))
	if err != nil {
		return nil
	}
	var keys []string
	for _, e := range entries {
		keys = append(keys, strings.TrimSuffix(e.Name(), suffix[kind]))
	}
	slices.SortFunc(keys, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	return keys
}

// Get returns a template by its key, ignoring case. NotFound.
func Get(kind Kind, key string) (Template, error) {
	for _, k := range Keys(kind) {
		if strings.EqualFold(k, key) {
			content, err := read(kind, k)
			return Template{Key: k, Name: k, Content: content}, err
		}
	}
	return Template{}, errs.NotFound("Template")
}

func read(kind Kind, key string) (string, error) {
	content, err := files.ReadFile(path.Join("files", string(kind), key+suffix[kind]))
	if err != nil {
		return "", fmt.Errorf("read template: %w", err)
	}
	if kind != Licenses {
		return string(content), nil
	}
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return "", fmt.Errorf("read template: %w", err)
	}
	text, err := io.ReadAll(r)
	return string(text), err
}

// License is a license with its permissions and conditions.
type License struct {
	Template
	Nickname    string
	Popular     bool
	URL         string
	Source      string
	Description string
	Permissions []string
	Conditions  []string
	Limitations []string
}

// license is a row of the table of licenses.
type license struct {
	key, name, nickname, source, description string
	popular                                  bool
	conditions, limitations                  []string
}

var (
	permissions = []string{"commercial-use", "modifications", "distribution", "private-use"}
	plain       = []string{"include-copyright"}
	warranty    = []string{"liability", "warranty"}
)

var licenses = []license{
	{key: "apache-2.0", name: "Apache License 2.0", source: "https://spdx.org/licenses/Apache-2.0.html", popular: true,
		description: "A permissive license that also grants patent rights. Changed files must be marked.",
		conditions:  []string{"include-copyright", "document-changes"}, limitations: []string{"trademark-use", "liability", "warranty"}},
	{key: "bsd-2-clause", name: `BSD 2-Clause "Simplified" License`, source: "https://spdx.org/licenses/BSD-2-Clause.html",
		description: "A permissive license that requires the copyright notice to be kept.", conditions: plain, limitations: warranty},
	{key: "bsd-3-clause", name: `BSD 3-Clause "New" or "Revised" License`, source: "https://spdx.org/licenses/BSD-3-Clause.html",
		description: "A permissive license that also forbids to advertise with the names of the authors.", conditions: plain, limitations: warranty},
	{key: "cc0-1.0", name: "Creative Commons Zero v1.0 Universal", source: "https://spdx.org/licenses/CC0-1.0.html",
		description: "Gives up all rights, for works of any kind.", limitations: []string{"liability", "trademark-use", "patent-use", "warranty"}},
	{key: "gpl-2.0", name: "GNU General Public License v2.0", nickname: "GNU GPLv2", source: "https://spdx.org/licenses/GPL-2.0.html",
		description: "Derived works must be distributed with their source code under the same license.",
		conditions:  []string{"include-copyright", "document-changes", "disclose-source", "same-license"}, limitations: warranty},
	{key: "gpl-3.0", name: "GNU General Public License v3.0", nickname: "GNU GPLv3", source: "https://spdx.org/licenses/GPL-3.0.html", popular: true,
		description: "Derived works must be distributed with their source code under the same license. It also grants patent rights.",
		conditions:  []string{"include-copyright", "document-changes", "disclose-source", "same-license"}, limitations: warranty},
	{key: "isc", name: "ISC License", source: "https://spdx.org/licenses/ISC.html",
		description: "A short permissive license that requires the copyright notice to be kept.", conditions: plain, limitations: warranty},
	{key: "lgpl-2.1", name: "GNU Lesser General Public License v2.1", nickname: "GNU LGPLv2.1", source: "https://spdx.org/licenses/LGPL-2.1.html",
		description: "For libraries: changes must be published under the same license, programs that use the library need not.",
		conditions:  []string{"include-copyright", "disclose-source", "document-changes", "same-license--library"}, limitations: warranty},
	{key: "lgpl-3.0", name: "GNU Lesser General Public License v3.0", nickname: "GNU LGPLv3", source: "https://spdx.org/licenses/LGPL-3.0.html",
		description: "For libraries: changes must be published under the same license, programs that use the library need not.",
		conditions:  []string{"include-copyright", "disclose-source", "document-changes", "same-license--library"}, limitations: warranty},
	{key: "mit", name: "MIT License", source: "https://spdx.org/licenses/MIT.html", popular: true,
		description: "A short permissive license that requires the copyright notice to be kept.", conditions: plain, limitations: warranty},
	{key: "mpl-2.0", name: "Mozilla Public License 2.0", source: "https://spdx.org/licenses/MPL-2.0.html",
		description: "Changed files must be published under the same license, files beside them need not.",
		conditions:  []string{"disclose-source", "include-copyright", "same-license--file"}, limitations: []string{"liability", "trademark-use", "warranty"}},
	{key: "unlicense", name: "The Unlicense", source: "https://unlicense.org/UNLICENSE",
		description: "Gives up all rights in the software.", limitations: warranty},
}

// AllLicenses returns the licenses with their texts, ordered by key.
func AllLicenses() ([]License, error) {
	var list []License
	for _, l := range licenses {
		one, err := l.open()
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

// LicenseNames returns the licenses without their texts, ordered by key.
func LicenseNames() []Template {
	var list []Template
	for _, l := range licenses {
		list = append(list, Template{Key: l.key, Name: l.name})
	}
	return list
}

// FindLicense returns a license by its key, ignoring case. NotFound.
func FindLicense(key string) (License, error) {
	for _, l := range licenses {
		if strings.EqualFold(l.key, key) {
			return l.open()
		}
	}
	return License{}, errs.NotFound("License")
}

func (l license) open() (License, error) {
	text, err := read(Licenses, l.key)
	return License{
		Template: Template{Key: l.key, Name: l.name, Content: text}, Nickname: l.nickname, Popular: l.popular,
		URL: "https://choosealicense.com/licenses/" + l.key + "/", Source: l.source, Description: l.description,
		Permissions: permissions, Conditions: l.conditions, Limitations: l.limitations,
	}, err
}

// Fill replaces the placeholders for the year, the copyright holder and the project
// in the text of a license. Placeholders of empty values are kept.
func Fill(text string, year int, holder, project string) string {
	pairs := []string{"[year]", strconv.Itoa(year)}
	if holder != "" {
		pairs = append(pairs, "[fullname]", holder, "[name of copyright owner]", holder, "<name of author>", holder)
	}
	if project != "" {
		pairs = append(pairs, "[project]", project)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
