// Package patch applies the optional fields of an update: a nil pointer stands
// for a field that the caller did not send.
package patch

import "slices"

// Element returns the element that a change to a list of an API is about, and the
// list with it: a copy of the element with the ID, which replaces it, or a new one
// at the end if the change has no ID. To remove means that the list has the element
// no longer, and nil is returned. ok is false if no element has the ID.
func Element[T any](list []*T, id *int64, remove bool, idOf func(*T) int64) (next []*T, element *T, ok bool) {
	element, at := new(T), -1
	if id != nil {
		if at = slices.IndexFunc(list, func(e *T) bool { return idOf(e) == *id }); at < 0 {
			return list, nil, false
		}
		*element = *list[at]
	}
	switch {
	case remove && at >= 0:
		return slices.Delete(list, at, at+1), nil, true
	case remove:
		return list, nil, true
	case at >= 0:
		list[at] = element
	default:
		list = append(list, element)
	}
	return list, element, true
}

// Set assigns *from to *to, unless from is nil.
func Set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}
