package db

import (
	"database/sql"
	"fmt"
	"time"
	"unsafe"
)

// Time scans a column of microseconds since 1970 into t, in UTC. Arguments need no
// conversion: a time.Time or *time.Time is stored in this form.
func Time(t *time.Time) sql.Scanner { return (*timeScanner)(t) }

// NullTime is Time for a column that may be null.
func NullTime(t **time.Time) sql.Scanner {
	// The struct has only this field, so no memory is allocated.
	return (*nullTimeScanner)(unsafe.Pointer(t))
}

type timeScanner time.Time

// Scan implements sql.Scanner.
func (s *timeScanner) Scan(v any) error {
	n, ok := v.(int64)
	if !ok {
		return fmt.Errorf("scan time: the column contains %T, not microseconds", v)
	}
	*s = timeScanner(time.UnixMicro(n).UTC())
	return nil
}

type nullTimeScanner struct{ t *time.Time }

// Scan implements sql.Scanner.
func (s *nullTimeScanner) Scan(v any) error {
	if v == nil {
		s.t = nil
		return nil
	}
	var t time.Time
	if err := Time(&t).Scan(v); err != nil {
		return err
	}
	s.t = &t
	return nil
}
