package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image/gif"
	"image/jpeg"
	"image/png"
	"net/http"
)

// imageKind is an image format that all browsers support and that cannot contain
// scripts.
type imageKind struct {
	contentType string
	extension   string
}

// maxSide is the maximum width and height of an image in pixels: a small file can
// expand to more than a browser can display.
const maxSide = 8192

// inspect detects the format of an image from its content. problem is the reason why
// the image is not accepted; empty if it is.
func inspect(image []byte) (kind imageKind, problem string) {
	var width, height int
	var err error
	switch kind.contentType = http.DetectContentType(image); kind.contentType {
	case "image/png":
		kind.extension = ".png"
		c, e := png.DecodeConfig(bytes.NewReader(image))
		width, height, err = c.Width, c.Height, e
	case "image/jpeg":
		kind.extension = ".jpg"
		c, e := jpeg.DecodeConfig(bytes.NewReader(image))
		width, height, err = c.Width, c.Height, e
	case "image/gif":
		kind.extension = ".gif"
		c, e := gif.DecodeConfig(bytes.NewReader(image))
		width, height, err = c.Width, c.Height, e
	case "image/webp":
		kind.extension = ".webp"
		width, height, err = webpSize(image)
	default:
		return imageKind{}, "file format is not supported. Please try one of the following supported formats: " +
			"image/png, image/jpeg, image/gif, image/webp"
	}
	switch {
	case err != nil || width < 1 || height < 1:
		return imageKind{}, "is not a valid image"
	case width > maxSide || height > maxSide:
		return imageKind{}, fmt.Sprintf("is too large (should be at most %d by %d pixels)", maxSide, maxSide)
	}
	return kind, ""
}

var errNotWebP = errors.New("not a WebP image")

// webpSize reads the dimensions of an image in one of the WebP formats: lossy,
// lossless and extended. See
// https://developers.google.com/speed/webp/docs/riff_container.
func webpSize(b []byte) (width, height int, err error) {
	const header = 30 // of RIFF, the first chunk, and its size in any form
	if len(b) < header || string(b[:4]) != "RIFF" || string(b[8:12]) != "WEBP" {
		return 0, 0, errNotWebP
	}
	body := b[20:]
	switch string(b[12:16]) {
	case "VP8 ":
		if !bytes.Equal(body[3:6], []byte{0x9d, 0x01, 0x2a}) {
			return 0, 0, errNotWebP
		}
		return int(binary.LittleEndian.Uint16(body[6:])) & 0x3fff, int(binary.LittleEndian.Uint16(body[8:])) & 0x3fff, nil
	case "VP8L":
		if body[0] != 0x2f {
			return 0, 0, errNotWebP
		}
		bits := binary.LittleEndian.Uint32(body[1:])
		return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1, nil
	case "VP8X":
		return uint24(body[4:]) + 1, uint24(body[7:]) + 1, nil
	}
	return 0, 0, errNotWebP
}

func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
