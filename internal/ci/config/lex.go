package config

import (
	"errors"
	"strings"
)

// maxTokens is the maximum number of tokens of a condition.
const maxTokens = 200

// token is a token of a condition: a value, or an operator in text.
type token struct {
	text  string
	value operand
}

func lex(in string) ([]token, error) {
	var tokens []token
	for {
		in = strings.TrimLeft(in, " \t\r\n\v\f")
		if in == "" {
			return tokens, nil
		}
		if len(tokens) == maxTokens {
			return nil, errors.New("too many tokens")
		}
		t, err := lexOne(in)
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, t)
		in = in[len(t.text):]
	}
}

func lexOne(in string) (token, error) {
	for _, sign := range []string{"(", ")", "==", "=~", "!=", "!~", "&&", "||"} {
		if strings.HasPrefix(in, sign) {
			return token{text: sign}, nil
		}
	}
	switch in[0] {
	case '$':
		if name := wordAt(in[1:]); name != "" {
			return token{in[:1+len(name)], variableOperand{name}}, nil
		}
	case '"', '\'':
		if end := strings.IndexByte(in[1:], in[0]); end >= 0 {
			return token{in[:end+2], literal{result{kind: words, text: in[1 : end+1]}}}, nil
		}
	case '/':
		return lexPattern(in)
	}
	if wordAt(in) == "null" {
		return token{in[:4], literal{}}, nil
	}
	return token{}, errors.New("unknown lexeme")
}

func wordAt(in string) string {
	end := strings.IndexFunc(in, func(c rune) bool {
		return c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
	if end < 0 {
		return in
	}
	return in[:end]
}

// lexPattern reads /expression/flags; a slash in the expression is escaped as \/.
func lexPattern(in string) (token, error) {
	end := 0
	for i := 1; i < len(in) && end == 0; i++ {
		switch in[i] {
		case '\\':
			i++
		case '/':
			end = i
		}
	}
	if end < 2 {
		return token{}, errors.New("a pattern is not closed")
	}
	end++
	for end < len(in) && strings.IndexByte("ismU", in[end]) >= 0 {
		end++
	}
	p, err := newPattern(in[:end])
	if err != nil {
		return token{}, err
	}
	return token{in[:end], literal{result{kind: pattern, pattern: p}}}, nil
}
