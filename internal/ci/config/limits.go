package config

// Limits bound the resources that a configuration can use. A zero field means the
// default.
type Limits struct {
	FileBytes  int // one file as written
	TotalBytes int // all files as written
	// Expanded is the size of the configuration after aliases, includes, extends and
	// references are resolved; a small file can expand to gigabytes.
	Expanded int
	Depth    int // levels of nested tables and lists
	Includes int // included files, counted each time
	Jobs     int // jobs of one pipeline
	Planned  int // all jobs of one pipeline in bytes, with what they inherit
	Needs    int // jobs that one job needs
}

// DefaultLimits returns limits that are equal or close to those of GitLab.com.
func DefaultLimits() Limits {
	return Limits{
		FileBytes:  2 << 20,
		TotalBytes: 16 << 20,
		Expanded:   32 << 20,
		Depth:      100,
		Includes:   150,
		Jobs:       500,
		Planned:    32 << 20,
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
		{&l.Planned, &standard.Planned},
		{&l.Needs, &standard.Needs},
	} {
		if *f.have == 0 {
			*f.have = *f.want
		}
	}
	return l
}

const (
	maxExtends      = 10      // levels of extends
	maxReferences   = 10      // levels of !reference
	maxNesting      = 10      // levels of lists in a script or in rules
	maxIncludeDepth = 100     // length of a chain of includes
	maxErrors       = 100     // reported at once
	maxMessage      = 1 << 10 // bytes of a message
	maxName         = 255     // characters of a job's name
	maxParallel     = 200     // jobs of one definition
	maxStages       = 1_000
	maxCrossNeeds   = 5 // artifacts of other pipelines that one job needs
	maxCaches       = 4
	maxTags         = 50
	maxCacheFiles   = 2
	maxFallbackKeys = 5
	// maxVariables is the maximum number of variables in one list. Every job gets a
	// copy of the default variables.
	maxVariables = 2_000
	// maxRows is the maximum number of combinations in all matrices together.
	maxRows = 20_000
	// maxInstances is the maximum number of jobs before rules are evaluated. Each job
	// takes tens of kilobytes to compile, even if the rules leave no more than
	// Limits.Jobs of them.
	maxInstances = 5_000
	// maxComparisons is the number of comparisons of paths with patterns after which a
	// rule counts as matched, as on GitLab.
	maxComparisons = 50_000
	// maxMatching limits the cost of these comparisons: the sum of the lengths of the
	// patterns times that of the paths.
	maxMatching = 500_000_000
)

// budget limits the work of assembling a configuration: every node that is created or
// copied has a cost.
type budget struct{ left int }

func newBudget(l Limits) *budget { return &budget{left: l.Expanded} }

// spend returns an error when the budget is used up.
func (b *budget) spend(n int, at Pos) error {
	b.left -= n
	if b.left < 0 {
		return tooBig(at)
	}
	return nil
}

// check returns an error if a tree is too large to be walked.
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
