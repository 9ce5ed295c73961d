package bind

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// everyParams has a parameter of every kind, wrapper and option.
type everyParams struct {
	ID     sampleRef         `param:"id,required"`
	Name   string            `param:"name,required" max:"20"`
	Title  Opt[string]       `param:"title,nonblank"`
	Kind   string            `param:"kind" enum:"one,two" default:"one"`
	Count  int64             `param:"count" enum:"1,2,3"`
	Small  *int32            `param:"small"`
	Ratio  Opt[float64]      `param:"ratio"`
	Sure   Opt[bool]         `param:"sure"`
	At     time.Time         `param:"at"`
	Day    Opt[Date]         `param:"day"`
	Tags   []string          `param:"tags,csv" max:"5"`
	IDs    Opt[[]int64]      `param:"ids" aliases:"numbers"`
	Hash   map[string]string `param:"hash"`
	Counts map[string]int64  `param:"counts"`
	Owner  *everyOwner       `param:"owner"`
	List   []everyItem       `param:"list,required"`
	File   *Upload           `param:"file"`
	Files  []*Upload         `param:"files"`
}

func (everyParams) ParamRules() []Rule {
	return []Rule{Exclusive("tags", "ids"), AtLeastOne("ratio", "sure"), ExactlyOne("hash", "counts"), AllOrNone("at", "day")}
}

type everyOwner struct {
	Name string     `param:"name,required"`
	Tags []string   `param:"tags"`
	More *everyItem `param:"more"`
}

type everyItem struct {
	Key   string            `param:"key,required"`
	Value Opt[string]       `param:"value"`
	Hash  map[string]string `param:"hash"`
}

var (
	knownNames   = `(id|name|title|kind|count|small|ratio|sure|at|day|tags|ids|numbers|hash|counts|owner|list|file|files|more|key|value)`
	knownPath    = knownNames + `(\[(\d+|` + knownNames + `)\])*`
	knownMessage = regexp.MustCompile(`^` + knownPath + `(, ` + knownPath + `)* (is missing|is empty|is invalid|does not have a valid value|` +
		`must be less than \d+ characters|must contain at most \d+ items|are mutually exclusive|provide all or none of parameters|` +
		`are missing, (at least|exactly) one parameter must be provided)$`)
	knownInput = regexp.MustCompile(`^(the body is not valid JSON: (unexpected (end|character|text after the end)|more than 32 levels) at line \d+, column \d+|` +
		`the JSON body must be an object|the JSON body has more than 100000 values|the (query string|form body) has a malformed %-escape|` +
		`a parameter has more than 32 levels|the request has more than 10000 parameters|the body is too large|the body's content type is not supported|` +
		`the body ends too early|the multipart body (has no usable boundary|is malformed or cut short)|the body has more than 32 files)$`)
)

// FuzzBind checks that no input causes panics, unlimited work, or errors that
// contain parts of the input.
func FuzzBind(f *testing.F) {
	f.Add(jsonType, "id=1&name=n", `{"list":[{"key":"k","value":null,"hash":{"a":"b"}}],"sure":true,"hash":{"x":1}}`)
	f.Add(jsonType+"; charset=utf-8", "", `{"owner":{"name":"\ud83d\ude00","more":{}},"at":"2024-01-01T00:00:00+01:00","day":"2024-01-01","ids":[1,"2",3.0]}`)
	f.Add(formType, "id=a&tags=x,y&tags[]=z", "list[][key]=a&list[][value]=1&list[][key]=b&owner[tags][]=x&hash[k]=v&ratio=1e5&count=2&small=7")
	f.Add(formType, "list[0][key]=a&list[1][hash][x]=y", "numbers[]=1&at=2024-02-29&title=+&kind=three")
	f.Add("", "%", "a=%zz")
	f.Add("text/plain", "name", "x")
	f.Add("application/xml", "name=%ff%00", "<a/>")
	f.Add(multipartType, "", part(`name="name"`, "n")+filePart(`name="file"; filename="../x.png"`, "image/png", "data")+part(`name="list[][key]"`, "k")+partsEnd)
	f.Add(multipartType, "", filePart(`name="files[]"; filename="a"`, "image/png", "")+part(`name="file"; filename=""`, ""))
	p, err := NewLayout(reflect.TypeFor[everyParams](), "id")
	if err != nil {
		f.Fatal(err)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, media, query, body string) {
		began := time.Now()
		in, err := message{method: "POST", query: query, media: media, body: body}.read(t, Limits{Body: 1 << 16, File: 1 << 12, TempDir: dir})
		if err != nil {
			e, ok := errors.AsType[*InputError](err)
			if !ok || !knownInput.MatchString(e.Text) {
				t.Fatalf("read gave %T %v", err, err)
			}
			checkEmpty(t, dir)
			return
		}
		var got everyParams
		err = p.Bind(in, &got)
		if took := time.Since(began); took > time.Minute {
			t.Errorf("took %v", took)
		}
		switch e, ok := errors.AsType[*ParamError](err); {
		case err == nil:
			checkBound(t, got)
		case !ok:
			t.Errorf("bind gave %T %v", err, err)
		case len(e.Messages) > maxMessages:
			t.Errorf("%d messages", len(e.Messages))
		default:
			for _, text := range e.Messages {
				if !knownMessage.MatchString(text) {
					t.Errorf("message %q", text)
				}
			}
		}
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		checkEmpty(t, dir)
	})
}

// checkBound checks the guarantees of the layout for a bound struct.
func checkBound(t *testing.T, got everyParams) {
	t.Helper()
	var texts []string
	texts = append(texts, got.ID.ID, got.Name, got.Title.Value, got.Kind)
	texts = append(texts, got.Tags...)
	for k, v := range got.Hash {
		texts = append(texts, k, v)
	}
	for _, item := range got.List {
		texts = append(texts, item.Key, item.Value.Value)
	}
	for _, text := range texts {
		if !utf8.ValidString(text) || strings.Contains(text, "\x00") {
			t.Errorf("bound the text %q", text)
		}
	}
	if got.ID.ID == "" || got.Name == "" || utf8.RuneCountInString(got.Name) > 20 || len(got.List) == 0 || len(got.Tags) > 5 ||
		got.Kind != "one" && got.Kind != "two" || got.Count < 0 || got.Count > 3 {
		t.Errorf("bound %+v", got)
	}
	for _, u := range append(got.Files, got.File) {
		if u == nil {
			continue
		}
		if n, err := io.Copy(io.Discard, u.Open()); err != nil || n != u.Size || CleanName(u.Name) != u.Name {
			t.Errorf("upload %+v reads %d bytes, %v", u, n, err)
		}
	}
}

// FuzzKey checks that splitting a key loses nothing, and that a value that was
// inserted with a key is found with it.
func FuzzKey(f *testing.F) {
	for _, key := range []string{"a", "a[]", "a[b]", "a[][b]", "a[][b][]", "a[0][k]", "[a]", "a[b", "a]b[", "a[[b]]", ""} {
		f.Add(key, "a[][b]")
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		var root value
		levels := 0
		for i, key := range []string{first, second, first} {
			name, steps := splitKey(key)
			if name+steps != key {
				t.Fatalf("%q was cut into %q and %q", key, name, steps)
			}
			if strings.Count(steps, "[") >= maxDepth {
				return
			}
			again, n := "", 0
			for rest := steps; rest != ""; n++ {
				var step string
				var list bool
				step, list, rest = nextStep(rest)
				if list != (step == "") || strings.ContainsAny(step, "[]") {
					t.Fatalf("%q has the step %q", key, step)
				}
				again += "[" + step + "]"
			}
			if again != steps {
				t.Fatalf("%q has the steps %q", key, again)
			}
			levels += n + 1
			fits := root.insert(steps, value{kind: valueText, text: key})
			if !fits && i == 0 {
				t.Fatalf("%q cannot be inserted into an empty value", key)
			}
			if !fits {
				return
			}
			if got := lastOf(&root, steps); got == nil || got.text != key {
				t.Fatalf("%q is not found after it was inserted into %+v", key, root)
			}
			if n := count(&root); n > levels {
				t.Fatalf("%d values of %d levels", n, levels)
			}
		}
	})
}

// lastOf follows the steps, using the last element of every list.
func lastOf(v *value, steps string) *value {
	for steps != "" {
		key, list, rest := nextStep(steps)
		at := len(v.kids) - 1
		if !list {
			at = v.find(key)
		}
		if at < 0 {
			return nil
		}
		v, steps = &v.kids[at], rest
	}
	return v
}

func count(v *value) int {
	n := 1
	for i := range v.kids {
		n += count(&v.kids[i])
	}
	return n
}

// FuzzJSON compares the JSON reader with encoding/json.
func FuzzJSON(f *testing.F) {
	for _, body := range []string{`{}`, `{"a":[1,-0.5e+3,true,false,null,"x\u00e9\ud83d\ude00\/"],"b":{"c":{}}}`, `{"a":01}`, `{"a":1,}`, ` { "a" : 1 } `, `{"\ud800":"\udc00"}`, `[]`, `{"a":1,"a":2}`} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		got, err := parseJSON(body)
		dec := json.NewDecoder(strings.NewReader(body))
		dec.UseNumber()
		var want map[string]any
		valid := json.Valid([]byte(body))
		if err != nil {
			e, ok := errors.AsType[*InputError](err)
			if !ok || !knownInput.MatchString(e.Text) {
				t.Fatalf("parse gave %T %v", err, err)
			}
			if valid && strings.HasPrefix(strings.TrimLeft(body, " \t\r\n"), "{") && !strings.Contains(e.Text, "more than") {
				t.Fatalf("refused %q: %v", body, err)
			}
			return
		}
		if strings.HasPrefix(body, "\ufeff") {
			return
		}
		if !valid {
			t.Fatalf("accepted %q", body)
		}
		if err := dec.Decode(&want); err != nil {
			t.Fatal(err)
		}
		plain, clean := plainOf(&got)
		if !clean {
			return // encoding/json replaces invalid UTF-8
		}
		a, _ := json.Marshal(plain)
		b, _ := json.Marshal(want)
		if !bytes.Equal(a, b) {
			t.Fatalf("%q is %s, want %s", body, a, b)
		}
	})
}

// plainOf converts a value to the type that encoding/json returns, and reports
// whether all its text is UTF-8.
func plainOf(v *value) (plain any, valid bool) {
	valid = utf8.ValidString(v.text) && utf8.ValidString(v.key)
	switch v.kind {
	case valueNull:
		return nil, valid
	case valueBool:
		return v.text == "true", valid
	case valueNumber:
		return json.Number(v.text), valid
	case valueText:
		return v.text, valid
	case valueList:
		list := []any{}
		for i := range v.kids {
			kid, ok := plainOf(&v.kids[i])
			list, valid = append(list, kid), valid && ok
		}
		return list, valid
	}
	object := map[string]any{}
	for i := range v.kids {
		kid, ok := plainOf(&v.kids[i])
		object[v.kids[i].key], valid = kid, valid && ok
	}
	return object, valid
}
