package sshd

import (
	"strings"
	"testing"
)

func TestParseCommand(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]command{
		`git-upload-pack '/group/project.git'`:                  {uploadPack, "group/project"},
		`git-upload-pack 'group/project.git'`:                   {uploadPack, "group/project"},
		`git-upload-pack '/group/sub/project.git/'`:             {uploadPack, "group/sub/project"},
		`git upload-pack '/group/project'`:                      {uploadPack, "group/project"},
		`git-receive-pack group/project.git`:                    {receivePack, "group/project"},
		`git-receive-pack "group/project.git"`:                  {receivePack, "group/project"},
		`git-upload-archive 'group/project.git'`:                {uploadArchive, "group/project"},
		`git-upload-pack 'group/it'\''s'`:                       {uploadPack, "group/it's"},
		`git-upload-pack 'group/wow'\!''`:                       {uploadPack, "group/wow!"},
		`git-upload-pack group/a\ b`:                            {uploadPack, "group/a b"},
		`git-upload-pack "group/a\"b"`:                          {uploadPack, `group/a"b`},
		`git-upload-pack '../../../etc/passwd'`:                 {uploadPack, "../../../etc/passwd"},
		`git-upload-pack '/7'`:                                  {uploadPack, ""}, // a number is no path
		`git-upload-pack ''`:                                    {uploadPack, ""},
		"git-upload-pack 'group/\xff'":                          {uploadPack, ""},
		`git-upload-pack '/` + strings.Repeat("a/", 2100) + `'`: {uploadPack, ""},

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

// FuzzWords quotes a word as git does and reads it back; and reads anything.
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
