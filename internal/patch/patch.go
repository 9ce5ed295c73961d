// Package patch applies the optional fields of an update: a nil pointer is a field
// that the caller did not send.
package patch

import "slices"

// Element returns the element that a change refers to, and the changed list: if the
// change has an ID, a copy of the element with that ID, which replaces it in the
// list; otherwise a new element at the end. If remove is set, the element is removed
// from the list and nil is returned. ok is false if no element has the ID.
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
