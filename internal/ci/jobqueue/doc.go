// Package jobqueue implements the job queue: the pending jobs, in which order
// runners get them, and the requests of runners that are held until there is a
// job (long polls). Package ci assigns the jobs.
package jobqueue
