package bench

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"svc/internal/git"
	"svc/internal/git/gittest"
)

// BenchmarkBranches compares lists of branches and tags with a page of a tree, in a
// repository with 5,000 branches and 1,000 annotated tags, of which some are not
// packed. No request may start a process, which would take a hundred times as long
// as a page of a tree. A branch contains its whole commit, an entry of a tree has
// four fields.
func BenchmarkBranches(b *testing.B) {
	t := &table{}
	p := newPushed(b, gittest.Generate(b, gittest.Size{Commits: 1200, Files: 100}))
	addRefs(b, p, 5000, 1000)
	tree := newLeanLoad(b, p.address("repository/tree?ref=main&per_page=20"), rootToken)
	for _, c := range []struct {
		name, path string
		least      float64
	}{
		{"page of branches", "repository/branches?per_page=20", 0.05},
		{"last page of branches", "repository/branches?per_page=20&page=250", 0.05},
		{"page of branches by search", "repository/branches?per_page=20&search=^topic/04", 0.05},
		{"branch", "repository/branches/topic%2F00042", 0.3},
		{"page of tags", "repository/tags?per_page=20&order_by=name", 0.15},
		{"tag", "repository/tags/v0.42", 0.3},
	} {
		b.Run(c.name, func(b *testing.B) {
			ours := newLeanLoad(b, p.address(c.path), rootToken)
			ours.run(b, requestRound)
			tree.run(b, requestRound)
			var ratios, rates, trees []float64
			for b.Loop() {
				for range requestRounds {
					base, rate := tree.run(b, requestRound), ours.run(b, requestRound)
					ratios, rates, trees = append(ratios, rate/base), append(rates, rate), append(trees, base)
				}
			}
			t.add(b, figure{
				name: c.name, measured: median(ratios), limit: c.least, atLeast: true, unit: "of a page of a tree",
				note: fmt.Sprintf("%.0f of %.0f requests/s", median(rates), median(trees)),
			})
		})
	}
	t.finish(b)
}

// addRefs adds branches, half of them merged, and annotated tags. A hundred branches
// and a tag are added after the others were packed.
func addRefs(b testing.TB, p *pushed, branches, tags int) {
	b.Helper()
	g := gittest.At(b, p.repo.Path())
	merged := strings.Fields(g.Git("rev-list", "-n1000", "--skip=1", "main"))
	add := func(loose bool) {
		var stream strings.Builder
		for i := range branches {
			if (i%(branches/100) == 0) != loose {
				continue
			}
			from := merged[i/2%len(merged)]
			if i%2 == 0 {
				fmt.Fprintf(&stream, "reset refs/heads/topic/%05d\nfrom %s\n\n", i, from)
			} else {
				fmt.Fprintf(&stream, "commit refs/heads/topic/%05d\ncommitter T <t@example.org> %d +0000\ndata 5\ntopic\nfrom %s\n\n", i, 1_600_000_000+i, from)
			}
		}
		for i := range tags {
			if (i == 0) == loose {
				fmt.Fprintf(&stream, "tag v0.%d\nfrom %s\ntagger T <t@example.org> %d +0000\ndata 5\nhello\n", i, merged[i%len(merged)], 1_600_000_000+i)
			}
		}
		g.Import(strings.NewReader(stream.String()))
	}
	add(false)
	_, err := p.repo.Housekeep(b.Context(), git.HousekeepOptions{Now: time.Now(), Full: true})
	check(b, err)
	add(true)
}
