package filetemplate_test

import (
	"strings"
	"testing"

	"svc/internal/errs"
	"svc/internal/filetemplate"
)

func TestTemplates(t *testing.T) {
	t.Parallel()
	for _, kind := range []filetemplate.Kind{filetemplate.Gitignores, filetemplate.Dockerfiles} {
		keys := filetemplate.Keys(kind)
		if len(keys) < 10 {
			t.Errorf("%s: %v", kind, keys)
		}
		for _, key := range keys {
			one, err := filetemplate.Get(kind, strings.ToUpper(key))
			if err != nil || one.Key != key || !strings.HasSuffix(one.Content, "\n") {
				t.Errorf("%s %s: %+v, %v", kind, key, one, err)
			}
		}
	}
	list, err := filetemplate.AllLicenses()
	if err != nil || len(list) != len(filetemplate.Keys(filetemplate.Licenses)) {
		t.Errorf("%d licenses of %d, %v", len(list), len(filetemplate.Keys(filetemplate.Licenses)), err)
	}
	for _, l := range list {
		if len(l.Content) < 500 || l.Name == "" || l.Description == "" {
			t.Errorf("license %s is incomplete", l.Key)
		}
	}
	mit, err := filetemplate.FindLicense("MIT")
	if text := filetemplate.Fill(mit.Content, 2026, "Ada", ""); err != nil || !strings.Contains(text, "Copyright (c) 2026 Ada\n") {
		t.Errorf("MIT: %v\n%s", err, text)
	}
	for _, key := range []string{"../x", "none", ""} {
		if _, err := filetemplate.Get(filetemplate.Gitignores, key); !errs.Is(err, errs.KindNotFound) {
			t.Errorf("%q: %v", key, err)
		}
	}
}
