package config

import (
	"strings"
	"testing"

	"svc/internal/re2"
)

func TestExpression(t *testing.T) {
	t.Parallel()
	variables := LookupIn([]Variable{
		{Key: "A", Value: "a"},
		{Key: "EMPTY"},
		{Key: "BLANK", Value: "  "},
		{Key: "LINES", Value: "one\ntwo"},
		{Key: "RE", Value: "/^a$/"},
		{Key: "NO_RE", Value: "a"},
		{Key: "BAD_RE", Value: "/(/"},
	})
	for in, want := range map[string]bool{
		`$A`:                              true,
		`$EMPTY`:                          false,
		`$BLANK`:                          false,
		`$MISSING`:                        false,
		`"x"`:                             true,
		`""`:                              false,
		`null`:                            false,
		`$A == "a"`:                       true,
		`"a" == $A`:                       true,
		`$A == 'a'`:                       true,
		`$A != "a"`:                       false,
		`$MISSING == null`:                true,
		`$MISSING == ""`:                  false,
		`$EMPTY == ""`:                    true,
		`$EMPTY == null`:                  false,
		`$A =~ /A/`:                       false,
		`$A =~ /A/i`:                      true,
		`$A !~ /A/`:                       true,
		`$A =~ $RE`:                       true,
		`$A =~ $NO_RE`:                    false,
		`$A !~ $NO_RE`:                    true,
		`$A =~ $BAD_RE`:                   false,
		`$A =~ $MISSING`:                  false,
		`$A !~ $MISSING`:                  true,
		`$MISSING =~ /^$/`:                true,
		`$LINES =~ /one.two/`:             false,
		`$LINES =~ /one.two/s`:            true,
		`$LINES =~ /^two$/m`:              true,
		`$A && $EMPTY`:                    false,
		`$EMPTY && $A`:                    false,
		`$EMPTY || $A`:                    true,
		`$A == "b" || $A == "a"`:          true,
		`$A || $MISSING && $MISSING`:      true,
		`($A || $MISSING) && $MISSING`:    false,
		`$A == "b" && $A == "c" || $A`:    true,
		`(($A))`:                          true,
		`($A || $EMPTY) == "a"`:           true,
		"  $A\n ==\t\"a\" ":               true,
		`"/x/" == "/x/"`:                  true,
		`"a/b" =~ /^a\/b$/`:               true,
		`$A =~ /^(a|b)$/ && $A !~ /^b$/i`: true,
	} {
		e, err := ParseExpression(in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if got := e.True(variables); got != want {
			t.Errorf("%s is %v", in, got)
		}
	}
}

func TestExpressionSyntax(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		``, `  `, `$`, `==`, `$A ==`, `== $A`, `$A $B`, `$A = "a"`, `$A == "a`, `($A`, `$A)`, `()`, `$A &&`, `|| $A`,
		`$A == nullx`, `true`, `$A =~ /(/`, `$A =~ /a`, `$A =~ //`, `$A & $B`, `$A =~ /a{1000}{1000}/`, `-1`,
		`$A =~ /a{1000}b{1000}c{1000}d{1000}e{1000}f{1000}/`,
		strings.Repeat("$A && ", maxTokens) + "$A",
		`$A =~ /` + strings.Repeat("a", re2.MaxLength+1) + `/`,
	} {
		if _, err := ParseExpression(in); err == nil {
			t.Errorf("%.60s is taken", in)
		}
	}
}

func FuzzExpression(f *testing.F) {
	for _, seed := range []string{
		`$A == "a" && ($B =~ /^x\/y$/i || $C != null)`, `$A !~ $B`, `"`, `/a/`, `((`, `$A =~ /a{1,1000}/`, "\x00", `null null`,
	} {
		f.Add(seed, "a", "/b/")
	}
	f.Fuzz(func(t *testing.T, in, a, b string) {
		e, err := ParseExpression(in)
		if err != nil {
			return
		}
		variables := LookupIn([]Variable{{Key: "A", Value: a}, {Key: "B", Value: b}})
		got := e.True(variables)
		// Parentheses around the expression change nothing.
		wrapped, err := ParseExpression("(" + in + ")")
		if err != nil {
			if tokens, _ := lex(in); len(tokens) <= maxTokens-2 {
				t.Fatalf("(%q): %v", in, err)
			}
			return
		}
		if wrapped.True(variables) != got {
			t.Fatalf("(%q) differs", in)
		}
	})
}
