package bench

import (
	"bytes"
	"fmt"
	"testing"
	"time"
)

const (
	requestRounds = 20
	requestRound  = 200 * time.Millisecond
)

// requests compares whole requests with those to a server that does nothing
// but send the same answer. The clients run in this process too and cost as
// much in both cases.
func requests(b *testing.B, t *table) {
	s := serve(b, "")
	fillUsers(b, s.DB, 300)
	fillIdentities(b, s.DB)
	token := newToken(b, s, "somebody")
	for _, r := range []struct {
		name, path, token string
		least             float64
	}{
		{"GET /user", "/api/v4/user", token, 0.40},
		{"GET /users?per_page=20 as administrator", "/api/v4/users?per_page=20", rootToken, 0.10},
	} {
		b.Run(r.path[len("/api/v4/"):], func(b *testing.B) {
			ours := newLoad(b, "http://"+s.Addr()+r.path, r.token)
			var body bytes.Buffer
			header, err := ours.send(&body)
			if err != nil {
				b.Fatal(err)
			}
			theirs := newLoad(b, bare(b, header, body.Bytes()), r.token)
			ours.run(b, requestRound) // prepares statements, notes the activity of the day
			theirs.run(b, requestRound)
			var ratios, rates, bareRates []float64
			for b.Loop() {
				for range requestRounds {
					bareRate, rate := theirs.run(b, requestRound), ours.run(b, requestRound)
					ratios, rates, bareRates = append(ratios, rate/bareRate), append(rates, rate), append(bareRates, bareRate)
				}
			}
			t.add(b, figure{
				name: r.name, measured: median(ratios), limit: r.least, atLeast: true, unit: "of a bare handler",
				note: fmt.Sprintf("%.0f of %.0f requests/s, %d bytes", median(rates), median(bareRates), body.Len()),
			})
		})
	}
}
