package git

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"svc/internal/git/gittest"
)

func TestCommit(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	id := g.Commit(gittest.Commit{Author: "Bö <b@x>", Seconds: 1234567890, Message: "A title\non two lines\n\nBody.\n", Changes: []gittest.Change{{Path: "a", Content: "b"}}})
	c, err := r.Commit(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	want := &Commit{
		ID: OID(id), TreeID: OID(g.Git("rev-parse", "main^{tree}")),
		Author:    Signature{Name: "Bö", Email: "b@x", When: time.Unix(1234567890, 0).In(time.FixedZone("", 7200))},
		Committer: Signature{Name: "Cole Committer", Email: "cole@example.com", When: time.Unix(1234567890, 0).UTC()},
		Message:   "A title\non two lines\n\nBody.\n", Title: "A title on two lines",
	}
	if d := cmp.Diff(want, c); d != "" {
		t.Error(d)
	}
	if c.Author.When.Format(time.RFC3339) != "2009-02-14T01:31:30+02:00" {
		t.Error(c.Author.When)
	}
}

func TestOddCommits(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	tree := "tree " + string(EmptyTree) + "\n"
	for _, c := range []struct {
		name, content string
		check         func(*Commit) bool
	}{
		{"latin-1", tree + "author Andr\xe9 <a@x> 5 +0000\ncommitter C <c@x> 6 -0130\nencoding ISO-8859-1\n\nGr\xfc\xdfe\n",
			func(c *Commit) bool { return c.Author.Name == "André" && c.Title == "Grüße" }},
		{"shift-jis", tree + "author A <a@x> 5 +0000\ncommitter C <c@x> 6 +0000\nencoding Shift_JIS\n\n\x93\xfa\x96{\n",
			func(c *Commit) bool { return c.Title == "日本" }},
		{"unknown charset", tree + "author A <a@x> 5 +0000\ncommitter C <c@x> 6 +0000\nencoding klingon\n\na\xffb\n",
			func(c *Commit) bool { return c.Title == "a\uFFFDb" }},
		{"wrong bytes", tree + "author \xff <a\xfe@x> 5 +0000\ncommitter C <c@x> 6 +0000\n\n\xc3(\n",
			func(c *Commit) bool { return c.Author.Email == "a\uFFFD@x" && c.Message == "\uFFFD(\n" }},
		{"zone", tree + "author A <a@x> 5 -0130\ncommitter C <c@x> 6 +9999\n\nm",
			func(c *Commit) bool {
				_, offset := c.Author.When.Zone()
				_, none := c.Committer.When.Zone()
				return offset == -5400 && none == 0
			}},
		{"no mail", tree + "author Nobody\ncommitter C <c@x\n\nm", func(c *Commit) bool { return c.Author.Name == "Nobody" && c.Committer.Email == "c@x" }},
		{"brackets", tree + "author A <a>b <c> 7 +0000\ncommitter <> 8 +0000\n\nm",
			func(c *Commit) bool {
				return c.Author.When.Unix() == 7 && c.Author.Email == "a" && c.Committer.When.Unix() == 8
			}},
		{"far time", tree + "author A <a@x> 99999999999999999 +0000\ncommitter A <a@x> 18446744073709551615 +0000\n\nm",
			func(c *Commit) bool { return c.Author.When.IsZero() && c.Committer.When.IsZero() }},
		{"signature", tree + "author A <a@x> 5 +0000\ncommitter A <a@x> 5 +0000\ngpgsig -----BEGIN\n tree x\n \n author Mallory <m@x> 9 +0000\n -----END\n\ntext\n",
			func(c *Commit) bool { return c.Signed && c.Message == "text\n" && c.Author.Name == "A" }},
		{"no message", tree + "author A <a@x> 5 +0000\ncommitter A <a@x> 5 +0000\n", func(c *Commit) bool { return c.Message == "" && c.Title == "" }},
		{"NUL", tree + "author A <a@x> 5 +0000\ncommitter A <a@x> 5 +0000\n\na\x00b", func(c *Commit) bool { return c.Message == "a\x00b" }},
	} {
		commit, err := r.Commit(t.Context(), g.Object("commit", c.content))
		if err != nil || !c.check(commit) {
			t.Errorf("%s: %+v %v", c.name, commit, err)
		}
	}
}

func TestTag(t *testing.T) {
	t.Parallel()
	r, g := open(t)
	id := g.Commit(gittest.Commit{})
	tagID := g.Object("tag", "object "+id+"\ntype commit\ntag v1\ntagger T <t@x> 5 +0100\n\nNotes\n-----BEGIN PGP SIGNATURE-----\nx\n")
	tag, err := r.Tag(t.Context(), OID(tagID))
	want := &Tag{ID: OID(tagID), Name: "v1", Target: OID(id), TargetType: TypeCommit, Message: "Notes\n",
		Tagger: Signature{Name: "T", Email: "t@x", When: time.Unix(5, 0).In(time.FixedZone("", 3600))}, Signature: "-----BEGIN PGP SIGNATURE-----\nx\n"}
	if d := cmp.Diff(want, tag); err != nil || d != "" {
		t.Error(err, d)
	}
	old := g.Object("tag", "object "+id+"\ntype commit\ntag v0\n\nno tagger\n")
	if tag, err := r.Tag(t.Context(), OID(old)); err != nil || !tag.Tagger.When.IsZero() || tag.Message != "no tagger\n" {
		t.Errorf("%+v %v", tag, err)
	}
	if _, err := r.Tag(t.Context(), OID(id)); err == nil {
		t.Error("a commit as a tag")
	}
}
