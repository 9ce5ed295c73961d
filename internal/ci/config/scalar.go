package config

import (
	"encoding/base64"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// CI files are YAML 1.1 as GitLab reads it: yes and on are true, 0755 is octal, 1.10 is
// the number 1.1. A YAML 1.2 parser would give variables other values.
var (
	octalPattern   = regexp.MustCompile(`^[-+]?0[0-7_,]+$`)
	decimalPattern = regexp.MustCompile(`^[-+]?(?:0|[1-9](?:[0-9]|,[0-9]|_[0-9])*)$`)
	binaryPattern  = regexp.MustCompile(`^[-+]?0b[01_,]+$`)
	hexPattern     = regexp.MustCompile(`^[-+]?0x[0-9a-fA-F_,]+$`)
	floatPattern   = regexp.MustCompile(`^[-+]?(?:[0-9][0-9_,]*)?\.[0-9]*(?:[eE][+-][0-9]+)?$`)
	// Minutes and seconds: 1:30 is 90.
	sexagesimalPattern = regexp.MustCompile(`^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9]){1,2}$`)
)

// resolve returns the kind of a plain scalar and its value as text.
func resolve(plain string) (kind, string) {
	if plain == "" || plain == "~" {
		return null, ""
	}
	switch strings.ToLower(plain) {
	case "null":
		return null, ""
	case "yes", "true", "on":
		return boolean, "true"
	case "no", "false", "off":
		return boolean, "false"
	case ".inf", "+.inf":
		return float, "Infinity"
	case "-.inf":
		return float, "-Infinity"
	case ".nan":
		return float, "NaN"
	}
	if c := plain[0]; c != '-' && c != '+' && c != '.' && (c < '0' || c > '9') {
		return text, plain
	}
	switch {
	case decimalPattern.MatchString(plain):
		return wholeNumber(plain, "", 10)
	case octalPattern.MatchString(plain):
		return wholeNumber(plain, "0", 8)
	case hexPattern.MatchString(plain):
		return wholeNumber(plain, "0x", 16)
	case binaryPattern.MatchString(plain):
		return wholeNumber(plain, "0b", 2)
	case floatPattern.MatchString(plain):
		return fraction(plain)
	case sexagesimalPattern.MatchString(plain):
		return sexagesimal(plain)
	}
	return text, plain
}

func ungrouped(s string) string { return strings.NewReplacer("_", "", ",", "").Replace(s) }

// wholeNumber formats an integer in decimal. Integers with very many digits stay text,
// because they are not used as numbers and formatting them takes long.
func wholeNumber(plain, prefix string, base int) (kind, string) {
	if len(plain) > 100 {
		return text, plain
	}
	sign, digits := "", plain
	if plain[0] == '-' || plain[0] == '+' {
		sign, digits = strings.TrimPrefix(plain[:1], "+"), plain[1:]
	}
	digits = ungrouped(strings.TrimPrefix(digits, prefix))
	if digits == "" {
		return text, plain
	}
	n, ok := new(big.Int).SetString(sign+digits, base)
	if !ok {
		return text, plain
	}
	return integer, n.String()
}

func fraction(plain string) (kind, string) {
	f, err := strconv.ParseFloat(ungrouped(plain), 64)
	if err != nil {
		return text, plain
	}
	return float, printFloat(f)
}

// printFloat formats a number as GitLab does: 1.0, 0.5, 1.0e+16.
func printFloat(f float64) string {
	if size := math.Abs(f); size != 0 && (size < 1e-4 || size >= 1e16) {
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
		if !strings.Contains(mantissa, ".") {
			mantissa += ".0"
		}
		return mantissa + "e" + exponent
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func sexagesimal(plain string) (kind, string) {
	if len(plain) > 20 {
		return text, plain
	}
	sign := int64(1)
	if plain[0] == '-' {
		sign = -1
	}
	var sum int64
	for part := range strings.SplitSeq(strings.TrimLeft(plain, "+-"), ":") {
		n, err := strconv.ParseInt(ungrouped(part), 10, 32)
		if err != nil {
			return text, plain
		}
		sum = sum*60 + n
	}
	return integer, strconv.FormatInt(sign*sum, 10)
}

// unpack decodes a !!binary scalar.
func unpack(packed string) string {
	raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(packed), ""))
	if err != nil {
		return packed
	}
	return strings.ToValidUTF8(string(raw), "\uFFFD")
}
