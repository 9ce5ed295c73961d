package errortrack

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"svc/internal/errs"
)

// MaxEvent is the maximum size of an event in bytes.
const MaxEvent = 1 << 20

// maxHeader is the maximum size of the header of an envelope or item in bytes.
const maxHeader = 64 << 10

// Envelope is the supported part of a request of an SDK: at most one event.
// Sessions, transactions, attachments, reports and unknown items are ignored.
type Envelope struct {
	ID    string // of the event, from the header; empty if missing
	Key   string // of the DSN in the header; empty if missing
	Event []byte // JSON; nil if there is none
}

// ReadEnvelope parses an envelope: a header, followed by items with a header and a
// payload each, separated by newlines. It holds one event in memory. admit is called
// with the key of the DSN in the header, before the items are read. Invalid if the
// envelope is malformed; TooLarge for an event of more than MaxEvent bytes.
//
// https://develop.sentry.dev/sdk/data-model/envelopes/
func ReadEnvelope(from io.Reader, admit func(key string) error) (*Envelope, error) {
	r := bufio.NewReaderSize(from, maxHeader)
	line, err := readLine(r)
	if err != nil {
		return nil, cutOff(err)
	}
	var head struct {
		EventID word `json:"event_id"`
		DSN     word `json:"dsn"`
	}
	if line = bytes.TrimSpace(line); len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &head) != nil {
		return nil, errs.Invalid("the header of the envelope is not a JSON object")
	}
	e := &Envelope{ID: eventID(string(head.EventID)), Key: KeyOf(string(head.DSN))}
	if err := admit(e.Key); err != nil {
		return nil, err
	}
	for {
		more, err := e.readItem(r)
		if err != nil {
			return nil, err
		}
		if !more {
			return e, nil
		}
	}
}

// readItem reads one item; more is false at the end.
func (e *Envelope) readItem(r *bufio.Reader) (more bool, err error) {
	line, err := readLine(r)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return true, nil // line ends between items and at the end
	}
	var head struct {
		Type   word   `json:"type"`
		Length *int64 `json:"length"`
	}
	if line[0] != '{' || json.Unmarshal(line, &head) != nil || head.Length != nil && *head.Length < 0 {
		return false, errs.Invalid("the header of an item is not a JSON object")
	}
	// SDKs send at most one event.
	keep := head.Type == "event" && e.Event == nil
	if head.Length == nil {
		return true, e.readToEnd(r, keep)
	}
	if !keep {
		n, err := io.CopyN(io.Discard, r, *head.Length)
		if n < *head.Length {
			return false, cutOff(err)
		}
		return true, nil
	}
	if *head.Length > MaxEvent {
		return false, tooLarge()
	}
	e.Event = make([]byte, *head.Length)
	if _, err := io.ReadFull(r, e.Event); err != nil {
		return false, cutOff(err)
	}
	return true, nil
}

// readToEnd reads a payload without a length, which is one line.
func (e *Envelope) readToEnd(r *bufio.Reader, keep bool) error {
	var text []byte
	for {
		part, err := r.ReadSlice('\n')
		if keep {
			if len(text)+len(part) > MaxEvent {
				return tooLarge()
			}
			text = append(text, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if keep {
			e.Event = text
		}
		return nil
	}
}

// readLine reads a header; io.EOF at the end of the input.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, errs.Invalid("a header of the envelope is too long")
	case errors.Is(err, io.EOF) && len(line) > 0:
		return line, nil
	}
	return line, err
}

func tooLarge() error { return errs.TooLarge("An event may have %d bytes at most", MaxEvent) }

// cutOff returns Invalid if an item is incomplete, and other errors unchanged.
func cutOff(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errs.Invalid("the envelope ends too early")
	}
	return err
}
