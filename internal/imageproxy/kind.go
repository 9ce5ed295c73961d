package imageproxy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
)

// maxPixels is the maximum number of pixels of an image: a small file can expand to
// more than a browser can display.
const maxPixels = 100_000_000

// SVG is the content type of SVG images.
const SVG = "image/svg+xml"

// Kind returns the content type of an image; empty if the content is not an image or
// has too many pixels. The Content-Type header of the server is ignored.
func Kind(content []byte) string {
	var size func(io.Reader) (image.Config, error)
	kind := http.DetectContentType(content)
	switch kind {
	case "image/png":
		size = png.DecodeConfig
	case "image/jpeg":
		size = jpeg.DecodeConfig
	case "image/gif":
		size = gif.DecodeConfig
	case "image/webp":
		size = webpConfig
	case "image/bmp":
		size = bmpConfig
	case "image/x-icon":
		size = iconConfig
	default:
		switch {
		case len(content) > 12 && (string(content[4:12]) == "ftypavif" || string(content[4:12]) == "ftypavis"):
			kind, size = "image/avif", avifConfig
		case isSVG(content):
			return SVG
		default:
			return ""
		}
	}
	c, err := size(bytes.NewReader(content))
	if err != nil || c.Width < 1 || c.Height < 1 || c.Width > maxPixels/c.Height {
		return ""
	}
	return kind
}

var errShort = errors.New("the header is incomplete")

// webpConfig reads the size of a WebP image from its first chunk.
func webpConfig(r io.Reader) (c image.Config, err error) {
	var h [30]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return c, errShort
	}
	switch string(h[12:16]) {
	case "VP8X":
		c.Width, c.Height = 1+(int(h[24])|int(h[25])<<8|int(h[26])<<16), 1+(int(h[27])|int(h[28])<<8|int(h[29])<<16)
	case "VP8L":
		bits := binary.LittleEndian.Uint32(h[21:])
		c.Width, c.Height = 1+int(bits&0x3fff), 1+int(bits>>14&0x3fff)
	case "VP8 ":
		c.Width, c.Height = int(binary.LittleEndian.Uint16(h[26:])&0x3fff), int(binary.LittleEndian.Uint16(h[28:])&0x3fff)
	default:
		return c, errors.New("the first chunk is not known")
	}
	return c, nil
}

// bmpConfig reads the size of a bitmap. A negative height means that rows are stored
// from top to bottom.
func bmpConfig(r io.Reader) (c image.Config, err error) {
	var h [26]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return c, errShort
	}
	c.Width, c.Height = int(int32(binary.LittleEndian.Uint32(h[18:]))), int(int32(binary.LittleEndian.Uint32(h[22:])))
	c.Height = max(c.Height, -c.Height)
	return c, nil
}

// maxIcons is the maximum number of images of an icon, whose headers are all read.
const maxIcons = 64

// iconConfig reads the size of the largest image of an icon. Each image is a PNG, or a bitmap
// without its file header, whose height includes a mask.
func iconConfig(r io.Reader) (largest image.Config, err error) {
	content, err := io.ReadAll(r)
	if err != nil || len(content) < 6 {
		return largest, errShort
	}
	n := int(binary.LittleEndian.Uint16(content[4:]))
	if n > maxIcons {
		return largest, errors.New("it has too many images")
	}
	for i := range n {
		at := 6 + 16*i
		if at+16 > len(content) {
			return largest, errShort
		}
		start := int64(binary.LittleEndian.Uint32(content[at+12:]))
		if start+12 > int64(len(content)) {
			return largest, errShort
		}
		var c image.Config
		if data := content[start:]; bytes.HasPrefix(data, []byte("\x89PNG")) {
			if c, err = png.DecodeConfig(bytes.NewReader(data)); err != nil {
				return largest, err
			}
		} else {
			c.Width, c.Height = int(int32(binary.LittleEndian.Uint32(data[4:]))), int(int32(binary.LittleEndian.Uint32(data[8:])))
			c.Height = max(c.Height, -c.Height)
		}
		if c.Width < 1 || c.Height < 1 {
			return largest, errors.New("an image has no size")
		}
		largest.Width, largest.Height = max(largest.Width, c.Width), max(largest.Height, c.Height)
	}
	return largest, nil
}

// avifConfig reads the largest size of the images of an AVIF file, which are in boxes named ispe,
// after four bytes of flags.
func avifConfig(r io.Reader) (largest image.Config, err error) {
	content, err := io.ReadAll(r)
	if err != nil {
		return largest, err
	}
	for {
		at := bytes.Index(content, []byte("ispe"))
		if at < 0 || at+16 > len(content) {
			return largest, nil // without a size, if there was none
		}
		content = content[at+8:]
		largest.Width = max(largest.Width, int(binary.BigEndian.Uint32(content)))
		largest.Height = max(largest.Height, int(binary.BigEndian.Uint32(content[4:])))
	}
}

// isSVG reports whether the root element of a document is svg. A declaration, a
// document type and comments may precede it.
func isSVG(content []byte) bool {
	content = bytes.TrimPrefix(content, []byte("\ufeff"))
	for {
		content = bytes.TrimLeft(content, " \t\r\n")
		var end string
		switch {
		case bytes.HasPrefix(content, []byte("<?")):
			end = "?>"
		case bytes.HasPrefix(content, []byte("<!--")):
			end = "-->"
		case bytes.HasPrefix(content, []byte("<!DOCTYPE svg")), bytes.HasPrefix(content, []byte("<!doctype svg")):
			end = ">"
		default:
			return len(content) > 5 && string(content[:4]) == "<svg" && bytes.IndexByte([]byte(" \t\r\n>"), content[4]) >= 0
		}
		at := bytes.Index(content[:min(len(content), 16<<10)], []byte(end))
		if at < 0 {
			return false
		}
		content = content[at+len(end):]
	}
}
