package bind

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAsks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		query, json string
		want        bool
	}{
		{query: "mirror=true", want: true},
		{query: "mirror=false"},
		{query: "mirror=0"},
		{query: "mirror="},
		{query: "mirror"},
		{query: "mirror=all"},
		{query: "other=true"},
		{query: "mirror[a]=1", want: true},
		{query: "mirror[]=x", want: true},
		{json: `{"mirror":true}`, want: true},
		{json: `{"mirror":"x"}`, want: true},
		{json: `{"mirror":7}`, want: true},
		{json: `{"mirror":{"a":1}}`, want: true},
		{json: `{"mirror":["a"]}`, want: true},
		{json: `{"mirror":false,"other":true}`},
		{json: `{"mirror":null}`},
		{json: `{"mirror":{}}`},
		{json: `{"mirror":[]}`},
		{json: `{"mirror":"all"}`},
	} {
		r := httptest.NewRequest(http.MethodPost, "/?"+tt.query, strings.NewReader(tt.json))
		if tt.json != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		in, err := ReadInput(r, httptest.NewRecorder(), nil, Limits{Body: 1 << 10})
		if err != nil {
			t.Fatal(err)
		}
		if got := in.Asks("mirror", "all"); got != tt.want {
			t.Errorf("%s%s: %t, want %t", tt.query, tt.json, got, tt.want)
		}
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}
}
