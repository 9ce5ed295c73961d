package config

// definition is a job as the file has it: one or, with parallel, several jobs
// of a plan, for which the rules are still to be asked.
type definition struct {
	Job  // what does not depend on the pipeline; its Variables are its own
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
	noVariables     bool     // inherit:variables: false
	someVariables   []string // inherit:variables with a list
	bridge          bool
	generators      []string // jobs that write the configuration of a child pipeline
}

// needSpec is a need as written: the job may be a group.
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
	bare          bool // nothing but when
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

// workflow decides about the pipeline as a whole.
type workflow struct {
	name       string
	rules      []*rule
	hasRules   bool
	autoCancel AutoCancel
}

// AutoCancel says when jobs that no one waits for are canceled.
type AutoCancel struct {
	// OnNewCommit is conservative, interruptible or none; empty is the default
	// of the project.
	OnNewCommit string `json:"on_new_commit,omitempty"`
	// OnJobFailure is all or none.
	OnJobFailure string `json:"on_job_failure,omitempty"`
}
