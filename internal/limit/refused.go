package limit

// Refused is the error of a request over its limit. Interfaces respond with status
// 429 and the headers of the decision.
type Refused struct{ Decision }

// Error returns the text for users.
func (Refused) Error() string {
	return "There were too many failed attempts from your address. Try again later."
}
