package joblog

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// shown is what a window of all lines shows.
func shown(t *testing.T, text string) []string {
	t.Helper()
	w, err := NewCache(1<<20).Window(1, strings.NewReader(text), int64(len(text)), 1, MaxLines)
	if err != nil {
		t.Fatal(err)
	}
	return w.Lines
}

func TestLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"plain", "a\nb\n", []string{"a", "b"}},
		{"not ended", "a\nb", []string{"a", "b"}},
		{"empty lines", "\n\nx\n", []string{"", "", "x"}},
		{"markup", `<script>alert("1")</script>&'` + "\n", []string{`&lt;script&gt;alert(&#34;1&#34;)&lt;/script&gt;&amp;&#39;`}},
		{"colors", "\x1b[31mred\x1b[0m \x1b[1;92mgreen\x1b[m\n", []string{`<span class="f1 ">red</span> <span class="f10 t-b ">green</span>`}},
		{"background", "\x1b[44mx\n", []string{`<span class="b4 ">x</span>`}},
		{"inverse", "\x1b[7;31mx\n", []string{`<span class="t-inv b1 ">x</span>`}},
		{"256", "\x1b[38;5;208mx\x1b[38;5;3my\n", []string{`<span class="f3 " data-fg="#ff8700">x</span><span class="f3 ">y</span>`}},
		{"grey", "\x1b[48;5;244mx\n", []string{`<span class="b8 " data-bg="#808080">x</span>`}},
		{"true color", "\x1b[38;2;1;2;3mx\x1b[39my\n", []string{`<span class="f0 " data-fg="#010203">x</span>y`}},
		{"color over lines", "\x1b[32ma\nb\x1b[0m\nc\n", []string{`<span class="f2 ">a</span>`, `<span class="f2 ">b</span>`, "c"}},
		{"all attributes off", "\x1b[1;2;3;4;8;9mx\x1b[22;23;24;28;29my\n", []string{`<span class="t-b t-f t-i t-u t-h t-s ">x</span>y`}},
		{"carriage return", "10%\r20%\r100%\n", []string{"100%"}},
		{"carriage return leaves a rest", "abcdef\rXY\n", []string{"XYcdef"}},
		{"windows line end", "abc\r\nd\r\n", []string{"abc", "d"}},
		{"erase to the end", "abcdef\rXY\x1b[K\n", []string{"XY"}},
		{"erase all", "abc\x1b[2K\rz\n", []string{"z"}},
		{"erase to the start", "abcd\x1b[2D\x1b[1K\n", []string{"   d"}},
		{"move", "abc\x1b[1Gx\x1b[2Cy\n", []string{"xbcy"}},
		{"backspace", "abd\bc\n", []string{"abc"}},
		{"tab", "a\tb\n", []string{"a       b"}},
		{"other sequences", "\x1b[2J\x1b[?25l\x1b(Ba\x1b]8;;https://evil.example\x07b\x1b]0;x\x1b\\c\x1bc\n", []string{"abc"}},
		{"a sequence that is broken off", "a\x1b[3\nb\x1b\n", []string{"a", "b"}},
		{"controls", "a\x00\x07\x7f\u0085b\n", []string{"ab"}},
		{"bytes that are no text", "a\xffb\n", []string{"a\ufffdb"}},
		{"sections", "section_start:10:one\r\x1b[0K\x1b[36mOne\x1b[0m\nx\nsection_end:13:one\r\x1b[0K\n", []string{`<span class="f6 ">One</span>`, "x", ""}},
		{"no section", "section_start:ten:one\r\x1b[0Kx section_end:1:y\n", []string{"x section_end:1:y"}},
	} {
		if got := shown(t, c.text); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestSections(t *testing.T) {
	t.Parallel()
	text := "\x1b[0Ksection_start:100:outer\r\x1b[0KOuter\n" + // 1
		"section_start:101:inner[collapsed=true]\r\x1b[0KInner\n" + // 2
		"text\n" + // 3
		"section_end:111:inner\r\x1b[0Ksection_start:111:next\r\x1b[0KNext\n" + // 4
		"text\n" + // 5
		"section_end:4000:outer\r\x1b[0K\n" + // 6, ends next as well
		"section_end:1:unknown\r\x1b[0K\n" +
		"section_start:1:open\r\x1b[0K\n"
	w, err := NewCache(1<<20).Window(1, strings.NewReader(text), int64(len(text)), 1, 10)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%+v", w.Sections)
	want := `[{Name:outer Start:1 End:6 Took:1:05:00 Collapsed:false began:100} {Name:inner Start:2 End:3 Took:00:10 Collapsed:true began:101} ` +
		`{Name:next Start:4 End:6 Took:1:04:49 Collapsed:false began:111} {Name:open Start:8 End:0 Took: Collapsed:false began:1}]`
	if got != want {
		t.Errorf("sections\n\t%s, want\n\t%s", got, want)
	}
}

// TestWindow compares every window of a log that has colors over marks, long
// lines and sections with what is shown of the whole.
func TestWindow(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&text, "\x1b[%dmline %d", 30+i/7%8, i)
		if i%500 == 3 {
			text.WriteString(strings.Repeat("x", maxLine+10))
		}
		text.WriteString("\n")
	}
	text.WriteString("the end")
	log := []byte(text.String())
	cache := NewCache(1 << 20)
	whole, err := render(bytes.NewReader(log), mark{}, 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if len(whole) != 3000+6+1 {
		t.Fatalf("%d lines", len(whole))
	}
	for from := 1; from < len(whole); from += 97 {
		w, err := cache.Window(1, bytes.NewReader(log), int64(len(log)), from, 50)
		if err != nil {
			t.Fatal(err)
		}
		if end := min(from+49, len(whole)); w.From != from || w.Total != len(whole) || !slices.Equal(w.Lines, whole[from-1:end]) {
			t.Fatalf("window at %d of %d: %d lines", from, w.Total, len(w.Lines))
		}
	}
	w, err := cache.Window(1, bytes.NewReader(log), int64(len(log)), Tail, 2)
	if err != nil || w.From != len(whole)-1 || !strings.Contains(w.Lines[1], "the end") {
		t.Errorf("tail %+v %v", w.Lines, err)
	}
	for _, c := range [][2]int{{0, 1}, {-7, 1}, {1 << 40, len(whole)}} {
		if w, err := cache.Window(1, bytes.NewReader(log), int64(len(log)), c[0], 1); err != nil || w.From != c[1] || len(w.Lines) != 1 {
			t.Errorf("from %d: %d with %d lines, %v", c[0], w.From, len(w.Lines), err)
		}
	}
	if w, err := cache.Window(2, bytes.NewReader(nil), 0, Tail, 5); err != nil || w.Total != 0 || len(w.Lines) != 0 {
		t.Errorf("an empty log: %+v %v", w, err)
	}
}

// TestGrowing reads a log on as it grows, and again when it is another one.
func TestGrowing(t *testing.T) {
	t.Parallel()
	cache := NewCache(1 << 20)
	text := "section_start:1:a\r\x1b[0KA\n\x1b[31mone\ntwo\x1b[0m thr" + strings.Repeat("ee\nfour\n", 400) + "section_end:9:a\r\x1b[0K\nfive\n"
	for size := 1; size <= len(text); size += 1 + size/50 {
		now, err := cache.Window(1, strings.NewReader(text[:size]), int64(size), 1, 500)
		if err != nil {
			t.Fatal(err)
		}
		if want := shown(t, text[:size]); !slices.Equal(now.Lines, want) {
			t.Fatalf("at %d: %q, want %q", size, now.Lines, want)
		}
	}
	if w, _ := cache.Window(1, strings.NewReader(text), int64(len(text)), 1, 1); len(w.Sections) != 1 || w.Sections[0].Took != "00:08" {
		t.Errorf("sections %+v", w.Sections)
	}
	other := strings.Repeat("another\n", 600)
	w, err := cache.Window(1, strings.NewReader(other), int64(len(other)), 1, 2)
	if err != nil || w.Total != 600 || w.Lines[0] != "another" || len(w.Sections) != 0 {
		t.Errorf("another log: %+v %v", w, err)
	}
}

func TestCacheForgets(t *testing.T) {
	t.Parallel()
	cache := NewCache(10_000)
	for key := range int64(100) {
		if _, err := cache.Window(key, strings.NewReader("x\n"), 2, 1, 1); err != nil {
			t.Fatal(err)
		}
	}
	if n := cache.known.Len(); n == 0 || n > 10 || cache.known.Used() > 10_000 {
		t.Errorf("%d logs are remembered, with %d bytes", n, cache.known.Used())
	}
}

func TestEnd(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("before\n", 20_000) + "a\n\x1b[31mb\x1b[0m\nc\n\n"
	got, err := End(strings.NewReader(text), int64(len(text)), 3)
	if want := []string{"a", `<span class="f1 ">b</span>`, "c"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q %v", got, err)
	}
	if got, err := End(strings.NewReader(""), 0, 3); err != nil || len(got) != 0 {
		t.Errorf("%q %v", got, err)
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	text := "Error: one\nok\nan er\x1b[31mror\x1b[0m\nGRÖSSE\n10%\rerror\nlast error"
	for want, lines := range map[string][]int{"error": {1, 3, 5, 6}, "ERROR:": {1}, "größ": nil, "grösse": {4}, "": nil, "10%": nil} {
		got, err := Search(strings.NewReader(text), int64(len(text)), want, 10)
		if err != nil || !slices.Equal(got.Lines, lines) || got.More {
			t.Errorf("%q: %+v %v", want, got, err)
		}
	}
	if got, _ := Search(strings.NewReader(text), int64(len(text)), "error", 2); len(got.Lines) != 2 || !got.More {
		t.Errorf("%+v", got)
	}
}

// safe is all that may stand in a line: spans of ours, and text without markup.
var safe = regexp.MustCompile(`^(?:[^<>&"']|&(?:lt|gt|amp|#34|#39);|<span class="(?:(?:[fb]\d{1,2}|t-[a-z]+) )*"(?: data-[fb]g="#[0-9a-f]{6}")*>|<span class="cut" title="The line is longer">|</span>)*$`)

// FuzzLines gives the terminal anything: what comes out is text and spans of
// ours that are closed, and it is the same however the log is read.
func FuzzLines(f *testing.F) {
	for _, seed := range []string{
		"\x1b[31;1mred\x1b[0m\n", "a\rb\x1b[K\x1b[2K\x1b[1K\n", "\x1b[38;5;200m\x1b[48;2;1;2;3mx\x1b[7my\n", "section_start:1:a[collapsed=true]\r\x1b[0Kx\nsection_end:2:a\r\x1b[0K\n",
		"\x1b]8;;javascript:alert(1)\x1b\\<script>\x1b]8;;\x07\n", "\xff\xfe\x1b[999999999999;;;mx\t\b\b\b\n", "\x1b[38;5m<b>\x1b[38mx", "\x1b[99999C<\x1b[99999Gx\n",
	} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, log []byte, cut int) {
		cache := NewCache(1 << 20)
		size := int64(len(log))
		w, err := cache.Window(1, bytes.NewReader(log), size, 1, MaxLines)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range w.Lines {
			if !safe.MatchString(line) || strings.Count(line, "<span") != strings.Count(line, "</span>") || !utf8.ValidString(line) {
				t.Fatalf("%q becomes %q", log, line)
			}
		}
		if want := min(w.Total, MaxLines); len(w.Lines) != want {
			t.Fatalf("%d lines of %d", len(w.Lines), want)
		}
		for _, s := range w.Sections {
			if s.Start < 1 || s.End != 0 && s.End < s.Start || s.End > w.Total {
				t.Fatalf("section %+v of %d lines", s, w.Total)
			}
		}
		part := int64(max(cut, 0)) % (size + 1)
		if _, err := cache.Window(2, bytes.NewReader(log[:part]), part, Tail, 10); err != nil {
			t.Fatal(err)
		}
		again, err := cache.Window(2, bytes.NewReader(log), size, 1, MaxLines)
		if err != nil || !slices.Equal(again.Lines, w.Lines) || fmt.Sprint(again.Sections) != fmt.Sprint(w.Sections) {
			t.Fatalf("read in two parts: %q, want %q, %v", again.Lines, w.Lines, err)
		}
		if _, err := Search(bytes.NewReader(log), size, "x", 3); err != nil {
			t.Fatal(err)
		}
		if _, err := End(bytes.NewReader(log), size, 3); err != nil {
			t.Fatal(err)
		}
	})
}

// BenchmarkIndex reads a log through that is colored as those of builds are.
func BenchmarkIndex(b *testing.B) {
	text := []byte(strings.Repeat("\x1b[0;33mwarning\x1b[0m: something that is of no use was found in line 123 of a file\n", 100_000))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := NewCache(1<<20).Window(1, bytes.NewReader(text), int64(len(text)), Tail, 100); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSearch looks through the same for what is not there.
func BenchmarkSearch(b *testing.B) {
	text := []byte(strings.Repeat("\x1b[0;33mwarning\x1b[0m: something that is of no use was found in line 123 of a file\n", 100_000))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := Search(bytes.NewReader(text), int64(len(text)), "nothing like it", 10); err != nil {
			b.Fatal(err)
		}
	}
}
