package web

import (
	"fmt"
	"html/template"
	"image/color"
	"strings"

	"github.com/boombuler/barcode/qr"
)

// drawQR draws a QR code: dark squares on a light background in all themes,
// with the margin that scanners need.
func drawQR(text string) (template.HTML, error) {
	code, err := qr.Encode(text, qr.M, qr.Auto)
	if err != nil {
		return "", fmt.Errorf("draw QR code: %w", err)
	}
	const margin = 4
	n := code.Bounds().Dx()
	var path strings.Builder
	for y := range n {
		for x := 0; x < n; x++ {
			run := 0
			for x+run < n && dark(code.At(x+run, y)) {
				run++
			}
			if run > 0 {
				fmt.Fprintf(&path, "M%d %dh%dv1h-%dz", x+margin, y+margin, run, run)
				x += run
			}
		}
	}
	size := n + 2*margin
	return template.HTML(fmt.Sprintf(
		`<svg class="qr" viewBox="0 0 %d %d" role="img" aria-label="QR code for your authenticator" shape-rendering="crispEdges">`+
			`<rect width="%d" height="%d" fill="#fff"/><path d="%s" fill="#000"/></svg>`, size, size, size, size, path.String())), nil
}

func dark(c color.Color) bool {
	r, _, _, _ := c.RGBA()
	return r < 0x8000
}
