package git

import (
	"testing"

	"svc/internal/git/gittest"
	"svc/internal/git/refstore"
	"svc/internal/git/refstore/refstoretest"
)

// TestRefFiles runs the common tests of refstore.Store on Files.
func TestRefFiles(t *testing.T) {
	t.Parallel()
	refstoretest.Run(t, func(t *testing.T) refstoretest.Fixture {
		r, g := open(t)
		one := g.Commit(gittest.Commit{Message: "one"})
		two := g.Commit(gittest.Commit{Message: "two"})
		g.Git("update-ref", "-d", "refs/heads/main")
		e := r.engine
		return refstoretest.Fixture{
			Open: func() refstore.Store { return e.Repo(g.Path).refs },
			One:  OID(one), Two: OID(two), Blob: OID(g.Object("blob", "x")),
			Tag: OID(g.Object("tag", "object "+one+"\ntype commit\ntag a\ntagger T <t@x> 1 +0000\n\nm\n")),
		}
	})
}
