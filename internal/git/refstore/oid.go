package refstore

import "strings"

// OID is an object ID in lowercase hex.
type OID string

// ZeroOID means no object: the old value of a ref to create, or the new value of a
// ref to delete.
const ZeroOID OID = "0000000000000000000000000000000000000000"

// ParseOID parses a full object ID.
func ParseOID(s string) (OID, bool) {
	if len(s) != len(ZeroOID) || !IsHex(s) {
		return "", false
	}
	return OID(strings.ToLower(s)), true
}

// IsHex reports whether a text consists of hexadecimal digits.
func IsHex(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		if !(c >= '0' && c <= '9' && s[i] < 0x40 || c >= 'a' && c <= 'f') {
			return false
		}
	}
	return true
}
