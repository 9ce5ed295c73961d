package config

// definition is a job as written in the file. It becomes one job of a plan, or several with
// parallel, unless its rules exclude it.
type definition struct {
	Job  // the fields that do not depend on the pipeline, with the job's own Variables
	pos  Pos
	at   Pos  // of its stage
	when When // as written, may be empty

	rules    []*rule
	hasRules bool
	only     *policy
	except   *policy

	needs    []needSpec
	hasNeeds bool
	matrix   [][]Variable // parallel:matrix, or nil
	count    int          // parallel, or 0

	allowFailureSet bool
	noVariables     bool            // inherit:variables: false
	someVariables   map[string]bool // inherit:variables with a list
	bridge          bool
	generators      []string // jobs that write the configuration of a child pipeline
}

// needSpec is a need as written. It may name a group of parallel jobs.
type needSpec struct {
	Need
	matrix [][]Variable // needs:parallel:matrix, or nil for all
	pos    Pos
}

// rule is one entry of rules.
type rule struct {
	pos           Pos
	condition     *Expression
	changes       *changes
	exists        *exists
	when          When
	startIn       int64
	allowFailure  *bool
	variables     []Variable
	needs         []needSpec
	hasNeeds      bool
	interruptible *bool
	autoCancel    *AutoCancel
	bare          bool // only when is set
}

type changes struct {
	paths     []string
	compareTo string
}

type exists struct {
	paths        []string
	project, ref string
}

// policy is only or except.
type policy struct {
	pos       Pos
	Refs      []string
	Variables []string
	Changes   []string
	exprs     []*Expression // of Variables
	hasRefs   bool
}

// workflow are the rules of the whole pipeline.
type workflow struct {
	name       string
	rules      []*rule
	hasRules   bool
	autoCancel AutoCancel
}

// AutoCancel configures when redundant jobs are canceled.
type AutoCancel struct {
	// OnNewCommit is conservative, interruptible or none; empty is the default
	// of the project.
	OnNewCommit string `json:"on_new_commit,omitempty"`
	// OnJobFailure is all or none.
	OnJobFailure string `json:"on_job_failure,omitempty"`
}
