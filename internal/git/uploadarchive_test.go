package git

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"svc/internal/git/gittest"
	"svc/internal/git/pktline"
)

func TestUploadArchive(t *testing.T) {
	t.Parallel()
	s := serve(t, PushOptions{})
	s.bare.Commit(gittest.Commit{Changes: []gittest.Change{{Path: "a", Content: "1"}, {Path: "d/b", Content: "2"}}})
	s.bare.Git("tag", "-m", "x", "v1", "main")
	s.bare.Git("update-ref", "refs/internal/x", "main")
	s.bare.Git("update-ref", "refs/odd", "main")
	url := s.urls()["ssh"]
	file := filepath.Join(t.TempDir(), "out")
	for _, c := range []struct {
		format ArchiveFormat
		args   []string
		want   string
	}{
		{Tar, []string{"main"}, "a d/b"},
		{TarGz, []string{"--format=tar.gz", "-9", "HEAD"}, "a d/b"},
		{Zip, []string{"--format=zip", "--prefix=x/", "refs/tags/v1"}, "x/a x/d/b"},
		{Tar, []string{"v1:d"}, "b"},
		{Tar, []string{"main", "d"}, "d/b"},
	} {
		s.must("", append([]string{"archive", "--remote=" + url, "-o", file}, c.args...)...)
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(slices.Sorted(maps.Keys(unpack(t, c.format, content))), " "); got != c.want {
			t.Errorf("%q: %s", c.args, got)
		}
	}
	if out := s.must("", "archive", "--remote="+url, "--list"); !strings.Contains(out, "tar.gz") {
		t.Error(out)
	}
	if err := s.faults(); err != nil {
		t.Error(err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"none"}, {s.bare.Tip("main")}, {"refs/internal/x"}, {"internal/x"}, {"odd"}, {"main~0"}, {"--output=" + secret, "main"}, {"-o" + secret, "main"}, {"--remote=/", "main"},
		{"--exec=/bin/true", "main"}, {"--add-file=" + secret, "main"}, {"--worktree-attributes", "main"}, {"--format=tar.xz", "main"}, {"--format=evil", "main"}, {"--"}, {},
		{"--add-virtual-file=x:y", "main"}, {"../main"}, {"main\nargument -x"}, {"main", "--add-file=" + secret}, {"main", "a", "--worktree-attributes"}, {"--no-list", "refs/internal/x"},
		{"--", "refs/internal/x"}, {"--", "--add-file=" + secret},
	} {
		var in []byte
		for _, arg := range args {
			in = pktline.Append(in, "argument "+arg+"\n")
		}
		var out bytes.Buffer
		if err := s.repo.UploadArchive(t.Context(), bytes.NewReader(pktline.AppendFlush(in)), &out); err == nil || !strings.Contains(out.String(), "NACK ") {
			t.Errorf("%q: %v %.200q", args, err, out.String())
		}
	}
	// Options after a list of formats do not make an archive of it.
	for _, args := range [][]string{{"-l", "--no-list", "refs/internal/x"}, {"main", "--list", "--no-list", "--add-file=" + secret}} {
		var in []byte
		for _, arg := range args {
			in = pktline.Append(in, "argument "+arg+"\n")
		}
		var out bytes.Buffer
		if err := s.repo.UploadArchive(t.Context(), bytes.NewReader(pktline.AppendFlush(in)), &out); err != nil || !strings.Contains(out.String(), "tar.gz\n") || strings.Contains(out.String(), "ustar") {
			t.Errorf("%q: %v %.200q", args, err, out.String())
		}
	}
	for _, in := range []string{"", "xxxx", "0008main0000", "0014argument main\n"} {
		var out bytes.Buffer
		if err := s.repo.UploadArchive(t.Context(), strings.NewReader(in), &out); err == nil {
			t.Errorf("%q: %.200q", in, out.String())
		}
	}
	if content, err := os.ReadFile(secret); err != nil || string(content) != "secret" {
		t.Errorf("%q, %v", content, err)
	}
	s.clean()
}
