// Package patch applies the optional fields of an update: a nil pointer stands
// for a field that the caller did not send.
package patch

// Set assigns *from to *to, unless from is nil.
func Set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}
