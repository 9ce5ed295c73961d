package diffnote

import (
	"context"
	"strings"
	"testing"

	"svc/internal/errs"
	"svc/internal/git"
)

// FuzzPosition decodes stored positions and checks them against arbitrary diffs:
// valid positions have line codes, and encoding does not change them.
func FuzzPosition(f *testing.F) {
	const diff = "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"
	f.Add(`{"type":"text","new_path":"a","new_line":2}`, diff)
	f.Add(`{"type":"text","new_path":"a","old_line":3,"new_line":3,"range":{"start":{"old_line":2},"end":{"old_line":3,"new_line":3}}}`, diff)
	f.Add(`{"type":"image","new_path":"a","x":1,"y":1,"width":2,"height":2}`, "")
	f.Fuzz(func(t *testing.T, kept, text string) {
		p, err := DecodePosition(kept)
		if err != nil || p == nil {
			return
		}
		file := &git.FileDiff{Diff: text}
		err = p.Check(context.Background(), func(context.Context, *Position) (*git.FileDiff, error) { return file, nil })
		if err != nil {
			if !errs.Is(err, errs.KindInvalid) {
				t.Fatal(err)
			}
			return
		}
		if p.Type != OnFile && p.Type != OnImage && strings.Count(p.Code, "_") != 2 {
			t.Errorf("a line without a code: %+v", p)
		}
		again, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := DecodePosition(again); err != nil || back.Code != p.Code || back.path() != p.path() {
			t.Errorf("%s is read as %+v, %v", again, back, err)
		}
	})
}
