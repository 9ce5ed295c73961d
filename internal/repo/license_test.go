package repo

import "testing"

func TestDetectLicense(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                     "other",
		"All rights reserved.": "other",
		"The MIT License\n\nPermission is hereby granted,\n free of charge, to any person obtaining a copy\n... WITHOUT WARRANTY OF ANY KIND": "mit",
		"Apache License\n  Version 2.0, January 2004\n":                                                  "apache-2.0",
		"GNU GENERAL PUBLIC LICENSE\n Version 3, 29 June 2007":                                           "gpl-3.0",
		"GNU GENERAL PUBLIC LICENSE\n Version 2, June 1991":                                              "gpl-2.0",
		"GNU LESSER GENERAL PUBLIC LICENSE\n Version 3, 29 June 2007 ... the GNU General Public License": "lgpl-3.0",
		"GNU AFFERO GENERAL PUBLIC LICENSE\n Version 3, 19 November 2007 ... GNU General Public License": "agpl-3.0",
		"Redistribution and use in source and binary forms ... ":                                         "bsd-2-clause",
		"Redistribution and use in source and binary forms ... Neither the name of the copyright holder": "bsd-3-clause",
		"This is free and unencumbered software released into the public domain.":                        "unlicense",
	} {
		if got := detectLicense(text); got.Key != want {
			t.Errorf("%q is %s, want %s", text, got.Key, want)
		}
	}
	for name, want := range map[string]bool{"LICENSE": true, "license.md": true, "LICENCE": true, "COPYING": true, "LICENSE-MIT": true, "UNLICENSE": true, "licenses": false, "my-license": false} {
		if licenseFile.MatchString(name) != want {
			t.Errorf("%s: want %t", name, want)
		}
	}
}
