package comment

import (
	"testing"

	"svc/internal/git"
)

func TestInDiff(t *testing.T) {
	t.Parallel()
	const text = "@@ -1,3 +1,3 @@ head\n a\n-b\n+c\n d\n@@ -10 +10,2 @@\n-x\n+y\n+z\n\\ No newline at end of file\n"
	for _, tt := range []struct {
		line    int64
		removed bool
		want    bool
	}{
		{2, false, true}, {2, true, true}, {1, false, false}, {3, true, false}, {10, false, true}, {11, false, true}, {10, true, true}, {11, true, false}, {12, false, false},
	} {
		side := "new"
		if tt.removed {
			side = "old"
		}
		d := &git.Diff{Files: []git.FileDiff{{NewPath: "other"}, {NewPath: "a", Diff: text}}}
		if got := inDiff(d, NewComment{Path: "a", Line: tt.line, LineType: side}) != nil; got != tt.want {
			t.Errorf("line %d, removed %t: %t", tt.line, tt.removed, got)
		}
	}
}
