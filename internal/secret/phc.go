package secret

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/crypto/argon2"
)

// The maximum parameters of a stored hash. A hash can be imported, and verifying a
// password must not use all memory or take minutes.
const (
	maxMemory  = 256 << 10 // KiB
	maxTime    = 16
	maxThreads = 16
	minSalt    = 8
	minSum     = 16
	maxPart    = 64 // bytes of salt or sum
)

// encoded is a parsed argon2id hash.
type encoded struct {
	Params
	salt []byte
	sum  []byte
}

// String returns the PHC format: $argon2id$v=19$m=19456,t=2,p=1$<salt>$<sum>.
func (e encoded) String() string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, e.Memory, e.Time, e.Threads,
		base64.RawStdEncoding.EncodeToString(e.salt), base64.RawStdEncoding.EncodeToString(e.sum))
}

// parsePHC parses the PHC format. It accepts only the canonical encoding of a hash,
// so that String returns the same text.
func parsePHC(s string) (encoded, error) {
	rest, ok := strings.CutPrefix(s, "$argon2id$")
	if !ok {
		return encoded{}, errors.New("not an argon2id hash")
	}
	parts := strings.Split(rest, "$")
	if len(parts) != 4 {
		return encoded{}, fmt.Errorf("argon2id hash has %d parts, not 4", len(parts))
	}
	if want := "v=" + strconv.Itoa(argon2.Version); parts[0] != want {
		return encoded{}, errors.New("argon2id hash of another version")
	}
	p, err := parseParams(parts[1])
	if err != nil {
		return encoded{}, err
	}
	salt, err := parsePart("salt", parts[2], minSalt)
	if err != nil {
		return encoded{}, err
	}
	sum, err := parsePart("sum", parts[3], minSum)
	if err != nil {
		return encoded{}, err
	}
	return encoded{Params: p, salt: salt, sum: sum}, nil
}

func parseParams(s string) (Params, error) {
	fields := strings.Split(s, ",")
	if len(fields) != 3 {
		return Params{}, fmt.Errorf("argon2id hash has %d parameters, not 3", len(fields))
	}
	var v [3]uint32
	for i, bound := range []struct {
		name string
		most uint64
	}{{"m=", maxMemory}, {"t=", maxTime}, {"p=", maxThreads}} {
		digits, ok := strings.CutPrefix(fields[i], bound.name)
		n, err := strconv.ParseUint(digits, 10, 32)
		if !ok || err != nil || strconv.FormatUint(n, 10) != digits {
			return Params{}, fmt.Errorf("argon2id hash: parameter %d is not %s<number>", i+1, bound.name)
		}
		if n == 0 || n > bound.most {
			return Params{}, fmt.Errorf("argon2id hash: %s%d is not in 1..%d", bound.name, n, bound.most)
		}
		v[i] = uint32(n)
	}
	p := Params{Memory: v[0], Time: v[1], Threads: uint8(v[2])}
	if p.Memory < 8*uint32(p.Threads) {
		return Params{}, fmt.Errorf("argon2id hash: m=%d is too little for p=%d", p.Memory, p.Threads)
	}
	return p, nil
}

func parsePart(name, s string, least int) ([]byte, error) {
	// The decoder ignores line breaks, which the format does not allow.
	if strings.ContainsAny(s, "\r\n") {
		return nil, fmt.Errorf("argon2id hash: %s has a line break", name)
	}
	b, err := base64.RawStdEncoding.Strict().DecodeString(s)
	if err != nil {
		return nil, fmt.Errorf("argon2id hash: %s is not base64", name)
	}
	if len(b) < least || len(b) > maxPart {
		return nil, fmt.Errorf("argon2id hash: %s has %d bytes, not %d..%d", name, len(b), least, maxPart)
	}
	return b, nil
}
