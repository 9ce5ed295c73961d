package sshd

import (
	"strings"
	"testing"

	"svc/internal/lfs"
)

func TestParseCommand(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]command{
		`git-upload-pack '/group/project.git'`:                  {service: uploadPack, project: "group/project"},
		`git-upload-pack 'group/project.git'`:                   {service: uploadPack, project: "group/project"},
		`git-upload-pack '/group/sub/project.git/'`:             {service: uploadPack, project: "group/sub/project"},
		`git upload-pack '/group/project'`:                      {service: uploadPack, project: "group/project"},
		`git-receive-pack group/project.git`:                    {service: receivePack, project: "group/project"},
		`git-receive-pack "group/project.git"`:                  {service: receivePack, project: "group/project"},
		`git-upload-archive 'group/project.git'`:                {service: uploadArchive, project: "group/project"},
		`git-upload-pack 'group/it'\''s'`:                       {service: uploadPack, project: "group/it's"},
		`git-upload-pack 'group/wow'\!''`:                       {service: uploadPack, project: "group/wow!"},
		`git-upload-pack group/a\ b`:                            {service: uploadPack, project: "group/a b"},
		`git-upload-pack "group/a\"b"`:                          {service: uploadPack, project: `group/a"b`},
		`git-upload-pack '../../../etc/passwd'`:                 {service: uploadPack, project: "../../../etc/passwd"},
		`git-upload-pack '/7'`:                                  {service: uploadPack, alias: "7"}, // a number is not a path
		`git-upload-pack ''`:                                    {service: uploadPack, project: ""},
		"git-upload-pack 'group/\xff'":                          {service: uploadPack, project: ""},
		`git-upload-pack '/` + strings.Repeat("a/", 2100) + `'`: {service: uploadPack, project: ""},
		`git-upload-pack '/name.git'`:                           {service: uploadPack, alias: "name"},
		`git-lfs-authenticate group/project.git download`:       {service: lfsAuthenticate, project: "group/project", operation: lfs.Download},
		`git-lfs-authenticate '/group/project.git' upload`:      {service: lfsAuthenticate, project: "group/project", operation: lfs.Upload},

		`git-lfs-authenticate group/project.git`:        {},
		`git-lfs-authenticate group/project.git delete`: {},
		``:                               {},
		`git-upload-pack`:                {},
		`git-upload-pack 'a/b' 'c/d'`:    {},
		`git-upload-pack --strict 'a/b'`: {},
		`git-upload-pack 'a/b'; ls`:      {},
		`git-upload-pack 'a/b`:           {},
		`git-upload-pack "a/b`:           {},
		`git-upload-pack a/b\`:           {},
		"git-upload-pack 'a/b'\x00":      {},
		`git-shell 'a/b'`:                {},
		`git gc 'a/b'`:                   {},
		`ls /`:                           {},
		`git-upload-pack ` + strings.Repeat("a", 9000): {},
	} {
		got, ok := parseCommand(line)
		if got != want || ok != (want != command{}) {
			t.Errorf("%.80q: %+v %v, want %+v", line, got, ok, want)
		}
	}
}

// FuzzWords checks that a word quoted like git does is parsed, and that no input
// panics.
func FuzzWords(f *testing.F) {
	for _, text := range []string{"a/b", "it's", "wow!", "", "a b", `"\$`, "\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = words(text)
		_, _ = parseCommand(text)
		if strings.ContainsRune(text, 0) {
			return
		}
		quoted := "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(text) + "'"
		got, ok := words("x  " + quoted + " y")
		if !ok || len(got) != 3 || got[1] != text {
			t.Errorf("%q was read as %q %v", quoted, got, ok)
		}
	})
}
