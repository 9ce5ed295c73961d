package sites

import (
	"fmt"
	"html"
	"net/http"
	"strconv"
)

// problem responds with a default error page.
func problem(w http.ResponseWriter, r *http.Request, status int) {
	text := map[int]string{
		http.StatusNotFound:         "The page does not exist, or you don't have access to it.",
		http.StatusBadRequest:       "This address is broken. Please go back and try again; cookies must be allowed.",
		http.StatusMethodNotAllowed: "A site can only be read.",
	}[status]
	if text == "" {
		text = "Something went wrong. Please try again later."
	}
	title := strconv.Itoa(status) + " " + http.StatusText(status)
	body := fmt.Sprintf(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<title>%s</title></head>
<body><h1>%s</h1><p>%s</p></body></html>
`, html.EscapeString(title), html.EscapeString(title), html.EscapeString(text))
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(body))
	}
}
