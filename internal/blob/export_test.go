package blob

import "time"

// SetStall sets the maximum time in which a server reads nothing of an upload.
func SetStall(s Store, d time.Duration) { s.(*bucket).stall = d }
