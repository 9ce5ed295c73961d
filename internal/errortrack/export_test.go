package errortrack

// Group is what makes events alike.
func Group(e *Event) string { return e.group() }

// Culprit is where an event was.
func Culprit(e *Event) string { return e.culprit() }

// Encode returns details as they are stored.
func Encode(d Details) ([]byte, error) { return d.encode() }
