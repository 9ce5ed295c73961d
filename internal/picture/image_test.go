package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"
)

func pngImage(t testing.TB, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, flat(width, height)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func flat(width, height int) image.Image {
	return image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.Black})
}

// webpImage returns the start of an image in one of the WebP formats.
func webpImage(form string, width, height int) []byte {
	b := make([]byte, 40)
	copy(b, "RIFF")
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-8))
	copy(b[8:], "WEBP"+form)
	switch body := b[20:]; form {
	case "VP8 ":
		copy(body[3:], []byte{0x9d, 0x01, 0x2a, byte(width), byte(width >> 8), byte(height), byte(height >> 8)})
	case "VP8L":
		body[0] = 0x2f
		binary.LittleEndian.PutUint32(body[1:], uint32(width-1)|uint32(height-1)<<14)
	case "VP8X":
		w, h := width-1, height-1
		copy(body[4:], []byte{byte(w), byte(w >> 8), byte(w >> 16), byte(h), byte(h >> 8), byte(h >> 16)})
	}
	return b
}

func TestInspect(t *testing.T) {
	t.Parallel()
	var asJPEG, asGIF bytes.Buffer
	if err := errors.Join(jpeg.Encode(&asJPEG, flat(3, 2), nil), gif.Encode(&asGIF, flat(3, 2), nil)); err != nil {
		t.Fatal(err)
	}
	asPNG := pngImage(t, 3, 2)
	for _, c := range []struct {
		name      string
		image     []byte
		extension string
		problem   string
	}{
		{"png", asPNG, ".png", ""},
		{"jpeg", asJPEG.Bytes(), ".jpg", ""},
		{"gif", asGIF.Bytes(), ".gif", ""},
		{"lossy webp", webpImage("VP8 ", 640, 480), ".webp", ""},
		{"lossless webp", webpImage("VP8L", 8192, 1), ".webp", ""},
		{"extended webp", webpImage("VP8X", 1, 8192), ".webp", ""},
		{"largest png", pngImage(t, 8192, 1), ".png", ""},
		{"wide png", pngImage(t, 8193, 1), "", "too large"},
		{"high png", pngImage(t, 1, 8193), "", "too large"},
		{"wide lossy webp", webpImage("VP8 ", 8193, 1), "", "too large"},
		{"wide lossless webp", webpImage("VP8L", 8193, 1), "", "too large"},
		{"high extended webp", webpImage("VP8X", 1, 1<<20), "", "too large"},
		{"webp of no size", webpImage("VP8 ", 0, 4), "", "not a valid image"},
		{"cut png", asPNG[:20], "", "not a valid image"},
		{"cut webp", webpImage("VP8L", 3, 2)[:22], "", "not a valid image"},
		{"svg", []byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`), "", "not supported"},
		{"html", []byte(`<!doctype html><script>alert(1)</script>`), "", "not supported"},
		{"tiff", []byte("II*\x00aaaaaaaaaaaaaaaa"), "", "not supported"},
		{"empty", nil, "", "not supported"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			kind, problem := inspect(c.image)
			if kind.extension != c.extension || !strings.Contains(problem, c.problem) || (problem == "") != (c.problem == "") {
				t.Errorf("%+v, %q", kind, problem)
			}
		})
	}
}

func FuzzInspect(f *testing.F) {
	f.Add(pngImage(f, 3, 2))
	for _, form := range []string{"VP8 ", "VP8L", "VP8X"} {
		f.Add(webpImage(form, 3, 2))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if kind, problem := inspect(b); (kind.extension == "") != (problem != "") {
			t.Errorf("%+v, %q", kind, problem)
		}
	})
}
