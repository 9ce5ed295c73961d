package bench

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"
)

const (
	requestRounds = 20
	requestRound  = 100 * time.Millisecond
	requestUsers  = 500
)

// tailClients is the number of clients of the requests whose slowest are measured.
const tailClients = 16

// tail compares the slowest hundredth of the requests of many clients with the median.
func tail(b *testing.B, name, address, token string) figure {
	b.Helper()
	l := newLeanLoadOf(b, tailClients, address, token)
	l.times(b, requestRound)
	var ratios, halves []float64
	for range requestRounds {
		took := slices.Sorted(slices.Values(l.times(b, requestRound)))
		half, slow := took[len(took)/2], took[len(took)*99/100]
		ratios, halves = append(ratios, slow.Seconds()/half.Seconds()), append(halves, half.Seconds()*1e3)
	}
	return figure{
		name: name + ", p99", measured: median(ratios), limit: 10, unit: "× p50", note: fmt.Sprintf("%d clients, p50 %.2f ms", tailClients, median(halves)),
	}
}

// requests compares how many requests per second the server serves with the rate of
// a minimal handler: net/http on a separate listener in the same process, which only
// writes the same body, with its type and length. The load is generated on the same
// machine, as with wrk or hey.
//
// The limit applies to the lean client, which like those programs uses little CPU
// time itself. Two other ratios are printed without a limit, because they are too
// favorable: with the client of net/http, which costs as much as a minimal server
// and is on both sides of the ratio; and against a handler that also sends all
// headers of svc, a part of whose cost is writing them with net/http.
func requests(b *testing.B, t *table) {
	s := serve(b, "")
	fillUsers(b, s.DB, requestUsers)
	fillPeople(b, s.DB)
	token := newToken(b, s, "somebody")
	project := newSite(b, s.Addr()).project
	for _, r := range []struct {
		name, path, token string
		least             float64
	}{
		{"GET /user", "/api/v4/user", token, 0.40},
		{"GET /users?per_page=20 as administrator", "/api/v4/users?per_page=20", rootToken, 0.15},
		{"GET /projects/:id", fmt.Sprintf("/api/v4/projects/%d", project), rootToken, 0.25},
	} {
		b.Run(r.path[len("/api/v4/"):], func(b *testing.B) {
			address := "http://" + s.Addr() + r.path
			var body bytes.Buffer
			header, err := get(http.DefaultClient, address, r.token, &body)
			if err != nil {
				b.Fatal(err)
			}
			plain := bare(b, http.Header{"Content-Type": header["Content-Type"], "Content-Length": {strconv.Itoa(body.Len())}}, body.Bytes())
			dressed := bare(b, header, body.Bytes())
			t.add(b, tail(b, r.name, address, r.token))
			rates := map[string][]float64{}
			loads := []struct {
				name string
				*load
			}{
				{"ours", newLeanLoad(b, address, r.token)},
				{"plain", newLeanLoad(b, plain, r.token)},
				{"dressed", newLeanLoad(b, dressed, r.token)},
				{"ours by net/http", newLoad(b, address, r.token)},
				{"plain by net/http", newLoad(b, plain, r.token)},
			}
			for _, l := range loads {
				l.run(b, requestRound) // prepares statements, records the activity of the day
			}
			for b.Loop() {
				for range requestRounds {
					for _, l := range loads {
						rates[l.name] = append(rates[l.name], l.run(b, requestRound))
					}
				}
			}
			add := func(name, ours, theirs string, least float64) {
				ratios := make([]float64, len(rates[ours]))
				for i := range ratios {
					ratios[i] = rates[ours][i] / rates[theirs][i]
				}
				t.add(b, figure{
					name: name, measured: median(ratios), limit: least, atLeast: true, informational: least == 0, unit: "of a bare handler",
					note: fmt.Sprintf("%.0f of %.0f requests/s, %d bytes", median(rates[ours]), median(rates[theirs]), body.Len()),
				})
			}
			add(r.name+", all headers", "ours", "dressed", 0)
			add(r.name+", client of net/http", "ours by net/http", "plain by net/http", 0)
			add(r.name, "ours", "plain", r.least)
		})
	}
}
