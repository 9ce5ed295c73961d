package flow

// outcome is the combined result of the jobs before a job.
type outcome int

const (
	open    outcome = iota // not yet known
	good                   // all jobs that ran succeeded or were allowed to fail
	idle                   // no job ran
	bad                    // a job failed
	stopped                // a job was canceled
)

// tally counts the states of jobs.
type tally struct {
	open, good, idle, bad, stopped int
}

func (t *tally) add(j *Job) {
	switch {
	case j.Status == Manual && j.AllowFailure:
		// A manual job that is allowed to fail does not block later jobs.
		t.idle++
	case !j.Status.Done():
		t.open++
	case j.Status == Success, j.AllowFailure && j.Status != Skipped:
		t.good++
	case j.Status == Skipped:
		t.idle++
	case j.Status == Canceled:
		t.stopped++
	default:
		t.bad++
	}
}

func (t *tally) merge(o tally) {
	t.open += o.open
	t.good += o.good
	t.idle += o.idle
	t.bad += o.bad
	t.stopped += o.stopped
}

func (t *tally) outcome() outcome {
	switch {
	case t.open > 0:
		return open
	case t.bad > 0:
		return bad
	case t.stopped > 0:
		return stopped
	case t.good == 0 && t.idle > 0:
		return idle
	}
	return good
}

// stageTallies has the tally of each stage, by its number.
type stageTallies map[int]*tally

func outcomes(jobs []Job) stageTallies {
	s := stageTallies{}
	for i := range jobs {
		j := &jobs[i]
		if s[j.Stage] == nil {
			s[j.Stage] = &tally{}
		}
		s[j.Stage].add(j)
	}
	return s
}

// before returns the outcome of all earlier stages.
func (s stageTallies) before(stage int) outcome {
	var sum tally
	for n, t := range s {
		if n < stage {
			sum.merge(*t)
		}
	}
	return sum.outcome()
}

// needed returns the outcome of the jobs that a job needs. Unlike a job of an earlier
// stage, a needed job that did not run keeps the job from running.
func needed(j *Job, byName map[string]*Job) outcome {
	var sum tally
	for _, n := range j.Needs {
		if before := byName[n.Name]; before != nil {
			sum.add(before)
		}
	}
	if sum.open == 0 && sum.bad == 0 && sum.stopped == 0 && sum.idle > 0 {
		return idle
	}
	return sum.outcome()
}

// Overall returns the state of a pipeline, or of a stage, with these jobs.
func Overall(jobs []Job) Status {
	count := map[Status]int{}
	var failed, canceled int
	for i := range jobs {
		j := &jobs[i]
		switch {
		case j.Status == Manual && j.AllowFailure:
			count[Skipped]++
		case j.AllowFailure && (j.Status == Failed || j.Status == Canceled):
			count[Success]++
		default:
			count[j.Status]++
		}
		if !j.AllowFailure {
			switch j.Status {
			case Failed:
				failed++
			case Canceled:
				canceled++
			}
		}
	}
	begun := count[Success] + failed + canceled + count[Running]
	switch {
	case len(jobs) == 0:
		return Skipped
	case count[Running] > 0, begun > 0 && count[Pending]+count[Waiting] > 0:
		return Running
	case count[Pending] > 0:
		return Pending
	case count[Waiting] > 0:
		return Waiting
	case count[Manual] > 0: // waits for a user
		return Manual
	case count[Scheduled] > 0:
		return Scheduled
	case count[Created] > 0 && begun > 0:
		return Running
	case count[Created] > 0:
		return Created
	case failed > 0:
		return Failed
	case canceled > 0:
		return Canceled
	case count[Success] > 0:
		return Success
	}
	return Skipped
}
