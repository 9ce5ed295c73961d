package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"
)

// maxPiece is the maximum size in bytes of the log data in one request.
const maxPiece = 1 << 20

// firstInterval is the interval between log updates until the server has requested
// another one.
const firstInterval = time.Second

// sender sends the log of a job to the server, and receives the state of the job
// from it. It is not safe for concurrent use.
type sender struct {
	server  *client
	id      int64
	token   string
	log     *trace
	debug   bool // CI_DEBUG_TRACE is enabled: the log may contain secrets
	pace    Pace
	onState func(state string) // called with the state of the job
	note    *slog.Logger

	sent     int64
	interval time.Duration
	pieceAt  time.Time // when the last piece was sent
}

// errOver means that the server no longer accepts updates of the job.
var errOver = errors.New("the job is not ours any more")

// follow sends the log as it grows, until ctx ends.
func (s *sender) follow(ctx context.Context) {
	s.interval, s.pieceAt = firstInterval, time.Now()
	for pause(ctx, min(s.pace.Ask, max(s.interval-time.Since(s.pieceAt), 10*time.Millisecond))) {
		err := s.step(ctx)
		if errors.Is(err, errOver) {
			return
		}
		if err != nil && ctx.Err() == nil { // unsent data is sent with the next piece
			s.note.Warn("cannot send the job log", "error", err)
		}
	}
}

// step sends new log data if it is due, and otherwise updates the state of the
// job.
func (s *sender) step(ctx context.Context) error {
	if time.Since(s.pieceAt) < s.interval || s.log.total().Bytesize <= s.sent {
		said, err := s.server.update(ctx, s.id, update{Token: s.token, State: "running"})
		if err != nil {
			return err
		}
		return s.hear(said, http.StatusOK)
	}
	s.pieceAt = time.Now()
	return s.catchUp(ctx)
}

// catchUp sends all log data that the server does not have yet.
func (s *sender) catchUp(ctx context.Context) error {
	size := s.log.total().Bytesize
	for stuck := 0; s.sent < size; {
		text, err := s.log.read(s.sent, maxPiece)
		if err != nil {
			return err
		}
		said, err := s.server.patch(ctx, s.id, s.token, s.sent, text, s.debug)
		if err != nil {
			return err
		}
		switch said.status {
		case http.StatusAccepted:
			s.sent += int64(len(text))
			stuck = 0
		case http.StatusRequestedRangeNotSatisfiable: // the log on the server has another size
			if stuck++; said.size < 0 || stuck > 5 {
				return fmt.Errorf("send the log at %d: the server does not say where to go on", s.sent)
			}
			s.sent = min(said.size, size)
		}
		if err := s.hear(said, http.StatusAccepted, http.StatusRequestedRangeNotSatisfiable); err != nil {
			return err
		}
	}
	return nil
}

// hear processes the job state and the update interval in a response.
func (s *sender) hear(h reply, good ...int) error {
	if h.interval > 0 {
		s.interval = h.interval
	}
	if h.status == http.StatusForbidden {
		s.onState("gone")
		return errOver
	}
	if h.state != "" {
		s.onState(h.state)
	}
	for _, status := range good {
		if h.status == status {
			return nil
		}
	}
	return fmt.Errorf("status %d", h.status)
}

// finish sends the rest of the log and the result to the server, with retries while
// the server is unavailable, until ctx ends or Pace.Finish is over.
func (s *sender) finish(ctx context.Context, u update) error {
	ctx, cancel := context.WithTimeout(ctx, s.pace.Finish)
	defer cancel()
	wait := backoff{first: s.pace.Retry, most: 10 * time.Second}
	for mismatches := 0; ; {
		err := s.catchUp(ctx)
		if err == nil {
			u.Token, u.Output = s.token, nil
			if mismatches < 3 { // then finish without a checksum
				total := s.log.total()
				u.Output = &total
			}
			var said reply
			if said, err = s.server.update(ctx, s.id, u); err == nil {
				switch said.status {
				case http.StatusOK:
					return nil
				case http.StatusPreconditionFailed: // the log on the server differs
					mismatches++
					s.sent = 0
					continue
				case http.StatusForbidden:
					return errOver
				}
				err = fmt.Errorf("status %d", said.status)
			}
		}
		if errors.Is(err, errOver) {
			return err
		}
		s.note.Warn("the job result could not be reported yet", "error", err)
		if !wait.pause(ctx) {
			return fmt.Errorf("report the result of job %d: %w", s.id, err)
		}
	}
}
