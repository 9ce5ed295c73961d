// Package flow is the state machine of pipelines: it defines the states of jobs
// and pipelines, and decides from the states of its jobs how a pipeline
// continues. It is pure; the caller saves its decisions.
package flow

import "slices"

// Status is the state of a job or a pipeline.
type Status string

// The states. A pipeline has those of its jobs taken together.
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

// next are the moves of a job. A move that is not here is refused.
var next = map[Status][]Status{
	Created:   {Pending, Manual, Scheduled, Skipped, Waiting, Canceled, Failed},
	Waiting:   {Pending, Canceled},
	Scheduled: {Pending, Waiting, Manual, Canceled, Skipped},
	Manual:    {Pending, Waiting, Canceled, Skipped, Failed}, // failed when its deployment is rejected
	Pending:   {Running, Canceled, Failed, Manual},           // manual when its deployment needs approvals
	Running:   {Success, Failed, Canceled, Pending},          // back to pending when its runner never began
	// What was skipped for a job that ran again may run after all.
	Skipped: {Created},
	// A trigger job follows its pipeline, of which jobs may be run again.
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

// Active reports whether a job in this state changes its state without a user.
func (s Status) Active() bool {
	switch s {
	case Waiting, Pending, Running:
		return true
	}
	return false
}

// When says under which outcome of those before it a job runs.
type When string

// The values of When.
const (
	OnSuccess When = "on_success"
	OnFailure When = "on_failure"
	Always    When = "always"
	ByHand    When = "manual"
	Delayed   When = "delayed"
)

// Job is what the decision needs to know of a job. Retried jobs are left out.
type Job struct {
	ID           int64
	Name         string
	Stage        int
	Status       Status
	When         When
	AllowFailure bool
	// Needs are the names of the jobs that it waits for, instead of all jobs
	// of the stages before; nil waits for the stages, empty waits for none.
	Needs []Need
	// Grouped says that a resource group decides when it becomes pending.
	Grouped bool
}

// Need is a job that another one waits for.
type Need struct {
	Name     string
	Optional bool // it need not exist
}

// Move is what becomes of a job.
type Move struct {
	ID int64
	To Status
}

// Next decides which jobs that wait for others can go on. After its moves are
// made there may be more to do; Advance does that.
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

// Advance makes the moves of Next until nothing is left to do, in the jobs
// given, and returns all of them in their order.
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

// after returns the next status of a job for an outcome of the jobs before it.
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
