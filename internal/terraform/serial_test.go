package terraform

import (
	"encoding/json"
	"testing"
)

// FuzzSerial compares the scanner with encoding/json.
func FuzzSerial(f *testing.F) {
	for _, text := range []string{`{"serial":3}`, ` {"a":{"serial":1},"serial" : 7 , "b":[1,"]"]}`, `{"serial":1,"x":"\\\"}"}`, `[]`, `{"serial":null}`, `{"x":"serial","serial":2}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := &serialScanner{}
		_, _ = s.Write([]byte(text))
		got, err := s.result()
		var members map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &members) != nil {
			return
		}
		var want int64
		raw, ok := members["serial"]
		valid := ok && json.Unmarshal(raw, &want) == nil && string(raw) != "null" && want >= 0
		if valid != (err == nil) || valid && got != want {
			// The two differ for escapes in the key and for a key that occurs twice.
			if n := countSerial(text); n == 1 {
				t.Errorf("%s: %d, %v; want %d, %t", text, got, err, want, valid)
			}
		}
	})
}

func countSerial(text string) int {
	n := 0
	for i := range text {
		if i+len(`"serial"`) <= len(text) && text[i:i+len(`"serial"`)] == `"serial"` {
			n++
		}
		if text[i] == '\\' {
			return 0
		}
	}
	return n
}
