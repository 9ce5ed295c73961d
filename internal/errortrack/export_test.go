package errortrack

// Group returns the digest by which an event is grouped.
func Group(e *Event) string { return e.group() }

// Culprit returns the location of an event.
func Culprit(e *Event) string { return e.culprit() }

// Encode returns details as they are stored.
func Encode(d Details) ([]byte, error) { return d.encode() }
