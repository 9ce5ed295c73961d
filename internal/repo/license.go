package repo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// License is the license of a repository.
type License struct {
	Path string // of its file
	Key  string // such as mit; other if the text is not known
	Name string
	URL  string // of its text; empty if it is not known
}

const (
	// maxLicense is the number of bytes that are read of a license file.
	maxLicense = 64 << 10
	// maxLicenseFiles is the maximum number of license files that are read.
	maxLicenseFiles = 3
)

// licenseFile matches the names of license files.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)([-.].*)?$`)

// License finds the license of the default branch by the text of its license file,
// for users who can read the code. It is nil without such a file.
func (s *Service) License(ctx context.Context, by actor.Actor, ref project.Ref) (*License, error) {
	p, r, err := s.read(ctx, by, ref)
	if errs.IsRefusal(err) || err == nil && p.DefaultBranch == "" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := r.Tree(ctx, git.TreeOptions{Rev: git.Heads + p.DefaultBranch})
	if errs.Is(missing(err, "Branch"), errs.KindNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for a license: %w", passing(err))
	}
	var found *License
	looked := 0
	for _, e := range entries {
		if e.Type != git.TypeBlob || !licenseFile.MatchString(e.Name) || looked >= maxLicenseFiles {
			continue
		}
		looked++
		text, err := readStart(ctx, r, e.OID, maxLicense)
		if err != nil {
			return nil, fmt.Errorf("read license: %w", passing(err))
		}
		l := detectLicense(text)
		l.Path = e.Path
		if found == nil || found.Key == "other" {
			found = &l
		}
	}
	return found, nil
}

// readStart reads the first bytes of an object.
func readStart(ctx context.Context, r git.Repo, id git.OID, most int64) (text string, err error) {
	c, err := r.Open(ctx, id)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	data, err := io.ReadAll(io.LimitReader(c, most))
	return string(data), err
}

// licenseMarks are phrases, in lower case and with single spaces, that identify licenses. The
// first license whose phrases all occur is used: licenses that contain the phrases of others
// come first.
var licenseMarks = []struct {
	key, name, url string
	phrases        []string
}{
	{"agpl-3.0", "GNU Affero General Public License v3.0", "https://www.gnu.org/licenses/agpl-3.0.html", []string{"gnu affero general public license", "version 3, 19 november 2007"}},
	{"lgpl-3.0", "GNU Lesser General Public License v3.0", "https://www.gnu.org/licenses/lgpl-3.0.html", []string{"gnu lesser general public license", "version 3, 29 june 2007"}},
	{"lgpl-2.1", "GNU Lesser General Public License v2.1", "https://www.gnu.org/licenses/lgpl-2.1.html", []string{"gnu lesser general public license", "version 2.1, february 1999"}},
	{"gpl-3.0", "GNU General Public License v3.0", "https://www.gnu.org/licenses/gpl-3.0.html", []string{"gnu general public license", "version 3, 29 june 2007"}},
	{"gpl-2.0", "GNU General Public License v2.0", "https://www.gnu.org/licenses/gpl-2.0.html", []string{"gnu general public license", "version 2, june 1991"}},
	{"apache-2.0", "Apache License 2.0", "https://www.apache.org/licenses/LICENSE-2.0", []string{"apache license", "version 2.0, january 2004"}},
	{"mpl-2.0", "Mozilla Public License 2.0", "https://www.mozilla.org/MPL/2.0/", []string{"mozilla public license version 2.0"}},
	{"epl-2.0", "Eclipse Public License 2.0", "https://www.eclipse.org/legal/epl-2.0", []string{"eclipse public license - v 2.0"}},
	{"cc0-1.0", "Creative Commons Zero v1.0 Universal", "https://creativecommons.org/publicdomain/zero/1.0/", []string{"cc0 1.0 universal"}},
	{"unlicense", "The Unlicense", "https://unlicense.org/", []string{"this is free and unencumbered software released into the public domain"}},
	{"bsl-1.0", "Boost Software License 1.0", "https://www.boost.org/LICENSE_1_0.txt", []string{"boost software license - version 1.0"}},
	{"bsd-3-clause", "BSD 3-Clause \"New\" or \"Revised\" License", "https://opensource.org/licenses/BSD-3-Clause", []string{"redistribution and use in source and binary forms", "neither the name of"}},
	{"bsd-2-clause", "BSD 2-Clause \"Simplified\" License", "https://opensource.org/licenses/BSD-2-Clause", []string{"redistribution and use in source and binary forms"}},
	{"isc", "ISC License", "https://opensource.org/licenses/ISC", []string{"permission to use, copy, modify, and", "distribute this software for any purpose with or without fee is hereby granted", "above copyright notice"}},
	{"mit", "MIT License", "https://opensource.org/licenses/MIT", []string{"permission is hereby granted, free of charge, to any person obtaining a copy", "without warranty of any kind"}},
}

// detectLicense returns the license of a text, without its path.
func detectLicense(text string) License {
	plain := strings.Join(strings.Fields(strings.ToLower(text)), " ")
	for _, m := range licenseMarks {
		all := true
		for _, phrase := range m.phrases {
			all = all && strings.Contains(plain, phrase)
		}
		if all {
			return License{Key: m.key, Name: m.name, URL: m.url}
		}
	}
	return License{Key: "other", Name: "Other"}
}
