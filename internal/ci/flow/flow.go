// Package flow is the state machine of pipelines: it defines the states of jobs
// and pipelines, and decides from the states of its jobs how a pipeline
// continues. It is pure; the caller saves its decisions.
package flow

import "slices"

// Status is the state of a job or a pipeline.
type Status string

// The states. The state of a pipeline is derived from those of its jobs.
const (
	Created   Status = "created"
	Waiting   Status = "waiting_for_resource" // for its turn in a resource group
	Scheduled Status = "scheduled"            // until its time has come
	Manual    Status = "manual"               // until a user starts it
	Pending   Status = "pending"              // for a runner
	Running   Status = "running"
	Success   Status = "success"
	Failed    Status = "failed"
	Canceled  Status = "canceled"
	Skipped   Status = "skipped"
)

// next are the allowed transitions of a job. Other transitions are refused.
var next = map[Status][]Status{
	Created:   {Pending, Manual, Scheduled, Skipped, Waiting, Canceled, Failed},
	Waiting:   {Pending, Canceled},
	Scheduled: {Pending, Waiting, Manual, Canceled, Skipped},
	Manual:    {Pending, Waiting, Canceled, Skipped, Failed}, // failed when its deployment is rejected
	Pending:   {Running, Canceled, Failed, Manual},           // manual when its deployment needs approvals
	Running:   {Success, Failed, Canceled, Pending},          // pending if its runner did not start it
	// A skipped job may run after all if an earlier job is retried.
	Skipped: {Created},
	// A trigger job mirrors its pipeline, in which jobs may be retried.
	Failed:   {Running},
	Canceled: {Running},
}

// Can reports whether a job may go from one state to another.
func Can(from, to Status) bool { return slices.Contains(next[from], to) }

// Done reports whether a job in this state has ended.
func (s Status) Done() bool {
	switch s {
	case Success, Failed, Canceled, Skipped:
		return true
	}
	return false
}

// Active reports whether a job in this state can change its state without a user.
func (s Status) Active() bool {
	switch s {
	case Waiting, Pending, Running:
		return true
	}
	return false
}

// When is the result of earlier jobs that a job requires.
type When string

// The values of When.
const (
	OnSuccess When = "on_success"
	OnFailure When = "on_failure"
	Always    When = "always"
	ByHand    When = "manual"
	Delayed   When = "delayed"
)

// Job is the part of a job on which the decisions depend. Retried jobs are left out.
type Job struct {
	ID           int64
	Name         string
	Stage        int
	Status       Status
	When         When
	AllowFailure bool
	// Needs are the names of the jobs that it waits for, instead of all jobs of earlier
	// stages; nil waits for the stages, empty waits for none.
	Needs []Need
	// Grouped means that a resource group decides when the job becomes pending.
	Grouped bool
}

// Need is a job that another one waits for.
type Need struct {
	Name     string
	Optional bool // it need not exist
}

// Move is a transition of a job.
type Move struct {
	ID int64
	To Status
}

// Next returns the transitions of jobs that can continue. After they are applied, others
// may become possible; Advance repeats Next until there are none.
func Next(jobs []Job) []Move {
	byName := make(map[string]*Job, len(jobs))
	for i := range jobs {
		byName[jobs[i].Name] = &jobs[i]
	}
	stages := outcomes(jobs)
	var moves []Move
	for i := range jobs {
		j := &jobs[i]
		if j.Status != Created {
			continue
		}
		before := stages.before(j.Stage)
		if j.Needs != nil {
			before = needed(j, byName)
		}
		if to, ready := j.after(before); ready {
			moves = append(moves, Move{j.ID, to})
		}
	}
	return moves
}

// Advance applies the transitions of Next to the given jobs until there are none, and
// returns all of them in order.
func Advance(jobs []Job) []Move {
	index := make(map[int64]int, len(jobs))
	for i := range jobs {
		index[jobs[i].ID] = i
	}
	var all []Move
	for {
		moves := Next(jobs)
		if len(moves) == 0 {
			return all
		}
		for _, m := range moves {
			jobs[index[m.ID]].Status = m.To
		}
		all = append(all, moves...)
	}
}

// after returns the next status of a job for the outcome of the jobs before it.
func (j *Job) after(before outcome) (to Status, ready bool) {
	if before == open {
		return "", false
	}
	runs := before == good || before == idle && j.Needs == nil
	switch j.When {
	case OnFailure:
		runs = before == bad
	case Always:
		runs = before != stopped
	}
	switch {
	case !runs:
		return Skipped, true
	case j.When == ByHand:
		return Manual, true
	case j.When == Delayed:
		return Scheduled, true
	case j.Grouped:
		return Waiting, true
	}
	return Pending, true
}
