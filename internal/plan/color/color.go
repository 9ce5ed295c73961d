// Package color parses the colors of labels.
package color

import (
	"strconv"
	"strings"
)

// Default is the color of a label that is created implicitly, by assigning an
// unknown name.
const Default = "#428bca"

// names maps the supported CSS color names to their values.
func names() map[string]string {
	return map[string]string{
		"black": "#000000", "silver": "#c0c0c0", "gray": "#808080", "grey": "#808080", "white": "#ffffff", "maroon": "#800000", "red": "#ff0000",
		"purple": "#800080", "fuchsia": "#ff00ff", "magenta": "#ff00ff", "green": "#008000", "lime": "#00ff00", "olive": "#808000",
		"yellow": "#ffff00", "navy": "#000080", "blue": "#0000ff", "teal": "#008080", "aqua": "#00ffff", "cyan": "#00ffff", "orange": "#ffa500",
		"pink": "#ffc0cb", "brown": "#a52a2a", "gold": "#ffd700", "indigo": "#4b0082", "violet": "#ee82ee", "crimson": "#dc143c",
		"coral": "#ff7f50", "tomato": "#ff6347", "salmon": "#fa8072", "khaki": "#f0e68c", "plum": "#dda0dd", "turquoise": "#40e0d0",
	}
}

// Parse returns a color, given as #rgb, #rrggbb or a CSS name, in the form #rrggbb.
func Parse(text string) (string, bool) {
	text = strings.ToLower(strings.TrimSpace(text))
	if hex, ok := names()[text]; ok {
		return hex, true
	}
	digits, ok := strings.CutPrefix(text, "#")
	if !ok || strings.Trim(digits, "0123456789abcdef") != "" {
		return "", false
	}
	switch len(digits) {
	case 6:
		return text, true
	case 3:
		return "#" + strings.Repeat(digits[:1], 2) + strings.Repeat(digits[1:2], 2) + strings.Repeat(digits[2:], 2), true
	}
	return "", false
}

// TextOn returns a text color that is readable on a background color.
func TextOn(color string) string {
	n, err := strconv.ParseUint(strings.TrimPrefix(color, "#"), 16, 32)
	if err != nil {
		return "#FFFFFF"
	}
	// Perceived brightness, 0 to 255.
	brightness := (299*(n>>16&255) + 587*(n>>8&255) + 114*(n&255)) / 1000
	if brightness > 150 {
		return "#1F1E24"
	}
	return "#FFFFFF"
}
