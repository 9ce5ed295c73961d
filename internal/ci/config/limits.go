package config

// Limits keep a configuration within what a server can bear. A zero field
// means the default.
type Limits struct {
	FileBytes  int // one file as written
	TotalBytes int // all files as written
	// Expanded is the size of the configuration after aliases, includes,
	// extends and references; a small file can ask for gigabytes.
	Expanded int
	Depth    int // tables and lists within each other
	Includes int // files, each time that they are included
	Jobs     int // jobs of one pipeline
	Needs    int // jobs that one job needs
}

// DefaultLimits are those of the public server, or near them.
func DefaultLimits() Limits {
	return Limits{
		FileBytes:  2 << 20,
		TotalBytes: 16 << 20,
		Expanded:   32 << 20,
		Depth:      100,
		Includes:   150,
		Jobs:       500,
		Needs:      50,
	}
}

func (l Limits) withDefaults() Limits {
	standard := DefaultLimits()
	for _, f := range []struct{ have, want *int }{
		{&l.FileBytes, &standard.FileBytes},
		{&l.TotalBytes, &standard.TotalBytes},
		{&l.Expanded, &standard.Expanded},
		{&l.Depth, &standard.Depth},
		{&l.Includes, &standard.Includes},
		{&l.Jobs, &standard.Jobs},
		{&l.Needs, &standard.Needs},
	} {
		if *f.have == 0 {
			*f.have = *f.want
		}
	}
	return l
}

const (
	maxExtends      = 10  // levels of extends
	maxReferences   = 10  // levels of !reference
	maxNesting      = 10  // levels of lists in a script or in rules
	maxIncludeDepth = 100 // files that include each other in a chain
	maxErrors       = 100 // reported at once
	maxName         = 255 // characters of a job's name
	maxParallel     = 200 // jobs that one definition makes
	maxCrossNeeds   = 5   // artifacts of other pipelines that one job needs
	maxCaches       = 4
	maxTags         = 50
	maxCacheFiles   = 2
	maxFallbackKeys = 5
	// maxInstances is how many jobs a configuration makes before rules are
	// evaluated. Each takes tens of kilobytes to compile, even if the rules
	// leave no more than Limits.Jobs of them.
	maxInstances = 5_000
	// maxComparisons is how many paths are held against patterns before a rule
	// counts as met, as on the public server.
	maxComparisons = 50_000
	// maxMatching bounds the same by the work of it: the sum of the lengths of
	// patterns times those of paths. Long patterns take long.
	maxMatching = 500_000_000
)

// budget bounds the work of putting a configuration together: every node that
// is made or copied costs something.
type budget struct{ left int }

func newBudget(l Limits) *budget { return &budget{left: l.Expanded} }

// spend fails when the work has become too much.
func (b *budget) spend(n int, at Pos) error {
	b.left -= n
	if b.left < 0 {
		return tooBig(at)
	}
	return nil
}

// check refuses a tree that is too large to walk.
func (l Limits) check(root *node) error {
	switch {
	case root.weight > l.Expanded:
		return tooBig(root.pos)
	case root.height > l.Depth:
		return failAt(root.pos, "", "The parsed YAML is too deep")
	}
	return nil
}

func tooBig(at Pos) *Error { return failAt(at, "", "The parsed YAML is too big") }
