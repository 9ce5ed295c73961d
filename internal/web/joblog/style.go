package joblog

import (
	"strconv"
	"strings"
)

// color is one of a terminal: 0 is the usual one, 1 to 16 those that have
// names, and what has trueColor set is red, green and blue.
type color int32

const trueColor color = 1 << 24

// Flags of a style.
const (
	bold = 1 << iota
	faint
	italic
	underline
	inverse
	hidden
	struck
)

// style is how text looks. It is carried from line to line.
type style struct {
	fg, bg color
	flags  uint8
}

// apply changes a style by the parameters of a sequence that ends in m. What
// it does not know it leaves alone.
func (s *style) apply(params []byte) {
	var list [32]int
	n := numbers(params, list[:])
	for i := 0; i < n; i++ {
		switch p := list[i]; {
		case p == 0:
			*s = style{}
		case p >= 1 && p <= 4:
			s.flags |= 1 << (p - 1)
		case p == 7 || p == 8 || p == 9:
			s.flags |= inverse << (p - 7)
		case p == 21 || p == 22:
			s.flags &^= bold | faint
		case p == 23 || p == 24:
			s.flags &^= italic << (p - 23)
		case p >= 27 && p <= 29:
			s.flags &^= inverse << (p - 27)
		case p >= 30 && p <= 37:
			s.fg = color(p - 30 + 1)
		case p >= 90 && p <= 97:
			s.fg = color(p - 90 + 9)
		case p >= 40 && p <= 47:
			s.bg = color(p - 40 + 1)
		case p >= 100 && p <= 107:
			s.bg = color(p - 100 + 9)
		case p == 39:
			s.fg = 0
		case p == 49:
			s.bg = 0
		case p == 38 || p == 48:
			c, used := extended(list[i+1 : n])
			if i += used; used == 0 {
				return // unknown where it ends
			}
			if p == 38 {
				s.fg = c
			} else {
				s.bg = c
			}
		}
	}
}

// numbers reads the parameters of a sequence; one that is missing is 0.
func numbers(params []byte, into []int) int {
	n, value := 0, 0
	for _, c := range params {
		switch {
		case c >= '0' && c <= '9':
			value = min(value*10+int(c-'0'), 1<<16)
		case c == ';' || c == ':':
			if n == len(into) {
				return n
			}
			into[n], value = value, 0
			n++
		default:
			return 0 // private use
		}
	}
	if n < len(into) {
		into[n] = value
		n++
	}
	return n
}

// extended reads a color out of the 256, or one of red, green and blue, and
// returns how many parameters that took; 0 when it is none.
func extended(p []int) (color, int) {
	switch {
	case len(p) >= 2 && p[0] == 5 && p[1] < 256:
		return indexed(p[1]), 2
	case len(p) >= 4 && p[0] == 2 && p[1] < 256 && p[2] < 256 && p[3] < 256:
		return trueColor | color(p[1]<<16|p[2]<<8|p[3]), 4
	}
	return 0, 0
}

// indexed is a color of the table of 256: sixteen with names, a cube, and
// greys.
func indexed(n int) color {
	switch {
	case n < 16:
		return color(n + 1)
	case n < 232:
		n -= 16
		step := func(v int) int {
			if v == 0 {
				return 0
			}
			return 55 + 40*v
		}
		return trueColor | color(step(n/36)<<16|step(n/6%6)<<8|step(n%6))
	}
	grey := 8 + 10*(n-232)
	return trueColor | color(grey<<16|grey<<8|grey)
}

// nearest is the color with a name that looks most like c: what a page shows
// that has no script to set any other.
func (c color) nearest() int {
	if c < trueColor {
		return int(c) - 1
	}
	best, least := 0, 1<<30
	for i, named := range [16]int{
		0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x0000ee, 0xcd00cd, 0x00cdcd, 0xe5e5e5,
		0x7f7f7f, 0xff0000, 0x00ff00, 0xffff00, 0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff,
	} {
		away := 0
		for shift := 0; shift <= 16; shift += 8 {
			d := int(c)>>shift&0xff - named>>shift&0xff
			away += d * d
		}
		if away < least {
			best, least = i, away
		}
	}
	return best
}

// open writes the element that gives text this style. Only our own words and
// numbers go into it.
func (s style) open(b *strings.Builder) {
	b.WriteString(`<span class="`)
	fg, bg := s.fg, s.bg
	if s.flags&inverse != 0 {
		b.WriteString("t-inv ")
		fg, bg = bg, fg
	}
	if fg != 0 {
		b.WriteString("f" + strconv.Itoa(fg.nearest()) + " ")
	}
	if bg != 0 {
		b.WriteString("b" + strconv.Itoa(bg.nearest()) + " ")
	}
	for i, name := range [...]string{"t-b", "t-f", "t-i", "t-u", "", "t-h", "t-s"} {
		if name != "" && s.flags&(1<<i) != 0 {
			b.WriteString(name + " ")
		}
	}
	b.WriteByte('"')
	exact(b, "fg", fg)
	exact(b, "bg", bg)
	b.WriteByte('>')
}

// exact marks a color without a name for the script.
func exact(b *strings.Builder, name string, c color) {
	if c < trueColor {
		return
	}
	hex := strconv.FormatInt(int64(c), 16) // trueColor makes it seven digits
	b.WriteString(` data-` + name + `="#` + hex[1:] + `"`)
}
