package bind

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestBindLists(t *testing.T) {
	t.Parallel()
	type params struct {
		A []string `param:"a"`
		N []int64  `param:"n"`
		C []string `param:"c,csv"`
		I []int    `param:"i,csv"`
	}
	abc := []string{"x", "y"}
	runCases(t, []caseOf[params]{
		{name: "absent is nil", sent: query("")},
		{name: "brackets", sent: query("a[]=x&a[]=y&n[]=1&n[]=2"), want: params{A: abc, N: []int64{1, 2}}},
		{name: "escaped brackets", sent: query("a%5B%5D=x&a%5b%5d=y"), want: params{A: abc}},
		{name: "repeated", sent: query("a=x&a=y&n=1&n=2"), want: params{A: abc, N: []int64{1, 2}}},
		{name: "single", sent: query("a=x,y&n=1"), want: params{A: []string{"x,y"}, N: []int64{1}}},
		{name: "indexed", sent: query("a[10]=y&a[9]=x"), want: params{A: abc}},
		{name: "form", sent: form("a[]=x&a[]=y"), want: params{A: abc}},
		{name: "json", sent: jsonOf(`{"a":["x","y"],"n":[1,"2"],"c":["x","y"],"i":[1,2]}`), want: params{abc, []int64{1, 2}, abc, []int{1, 2}}},
		{name: "json single", sent: jsonOf(`{"a":"x","n":1,"i":2}`), want: params{A: []string{"x"}, N: []int64{1}, I: []int{2}}},
		{name: "json mixed", sent: jsonOf(`{"a":[1,true,"z"]}`), want: params{A: []string{"1", "true", "z"}}},
		{name: "comma separated", sent: query("c=x,+y,,&i=1,2"), want: params{C: abc, I: []int{1, 2}}},
		{name: "comma separated in json", sent: jsonOf(`{"c":"x,y","i":"1, 2"}`), want: params{C: abc, I: []int{1, 2}}},
		{name: "commas in elements", sent: query("c[]=x,y&c[]=z"), want: params{C: []string{"x", "y", "z"}}},
		{name: "json numbers and commas", sent: jsonOf(`{"i":[1,"2,3"]}`), want: params{I: []int{1, 2, 3}}},
		{name: "sent empty", sent: query("a[]=&n[]=&c=&i[]="), want: params{[]string{}, []int64{}, []string{}, []int{}}},
		{name: "sent empty in json", sent: jsonOf(`{"a":[],"n":[],"c":"","i":""}`), want: params{[]string{}, []int64{}, []string{}, []int{}}},
		{name: "blanks are dropped", sent: query("a[]=&a[]=x&n[]=&n[]=3"), want: params{A: []string{"x"}, N: []int64{3}}},
		{name: "null", sent: jsonOf(`{"a":null}`)},
		{name: "element of another type", sent: query("n[]=1&n[]=x"), error: "n is invalid"},
		{name: "csv of another type", sent: query("i=1,x"), error: "i is invalid"},
		{name: "null element", sent: jsonOf(`{"a":["x",null]}`), error: "a is invalid"},
		{name: "no value for an element", sent: query("a[]"), error: "a is invalid"},
		{name: "list in list", sent: jsonOf(`{"a":[["x"]]}`), error: "a is invalid"},
		{name: "list in list in a query", sent: query("a[][]=x"), error: "a is invalid"},
		{name: "hash", sent: query("a[k]=x"), error: "a is invalid"},
		{name: "signed index", sent: query("a[+1]=x"), error: "a is invalid"},
		{name: "hash element", sent: query("a[][k]=x"), error: "a is invalid"},
		{name: "huge index", sent: query("a[99999999999999999999]=x"), error: "a is invalid"},
		{name: "more than can be meant", sent: query("c=" + strings.Repeat("x,", maxValues+1)), error: "c is invalid"},
		{name: "text that is none", sent: query("a[]=x&a[]=%ff"), error: "a is invalid"},
	})
}

func TestBindNested(t *testing.T) {
	t.Parallel()
	type variable struct {
		Key   string   `param:"key,required" aliases:"name"`
		Value string   `param:"value"`
		Tags  []string `param:"tags"`
	}
	type owner struct {
		Name string `param:"name,required"`
		Age  int    `param:"age"`
	}
	type params struct {
		Variables []variable        `param:"variables"`
		Owner     owner             `param:"owner"`
		Other     *owner            `param:"other"`
		Hash      map[string]string `param:"hash"`
		Counts    map[string]int64  `param:"counts"`
	}
	ab := params{Variables: []variable{{Key: "A", Value: "1"}, {Key: "B", Value: "2"}}}
	runCases(t, []caseOf[params]{
		{name: "absent"},
		{name: "arrays of hashes", sent: form("variables[][key]=A&variables[][value]=1&variables[][key]=B&variables[][value]=2"), want: ab},
		{name: "indexed", sent: form("variables[1][key]=B&variables[0][key]=A&variables[0][value]=1&variables[1][value]=2"), want: ab},
		{name: "json", sent: jsonOf(`{"variables":[{"key":"A","value":"1","more":{}},{"key":"B","value":2}]}`), want: ab},
		{name: "in a query", sent: query("variables[][key]=A&variables[][value]=1&variables[][key]=B&variables[][value]=2"), want: ab},
		{name: "lists in hashes in a list", sent: form("variables[][key]=A&variables[][tags][]=x&variables[][tags][]=y&variables[][key]=B&variables[][tags][]=z"),
			want: params{Variables: []variable{{Key: "A", Tags: []string{"x", "y"}}, {Key: "B", Tags: []string{"z"}}}}},
		{name: "a second value starts the next", sent: form("variables[][value]=1&variables[][key]=A&variables[][value]=2&variables[][key]=B"), want: ab},
		{name: "alias of a member", sent: jsonOf(`{"variables":[{"name":"A","value":"1"},{"name":"x","key":"B","value":"2"}]}`), want: ab},
		{name: "null for a hash of the list", sent: jsonOf(`{"variables":[null]}`), error: "variables is invalid"},
		{name: "empty list", sent: jsonOf(`{"variables":[]}`), want: params{Variables: []variable{}}},
		{name: "empty list in a form", sent: form("variables[]="), want: params{Variables: []variable{}}},
		{name: "members missing", sent: form("variables[][value]=1&variables[][value]=2"), error: "variables[0][key] is missing, variables[1][key] is missing"},
		{name: "members missing in json", sent: jsonOf(`{"variables":[{"key":"A"},{}]}`), error: "variables[1][key] is missing"},
		{name: "member empty", sent: jsonOf(`{"variables":[{"key":""}]}`), error: "variables[0][key] is empty"},
		{name: "member of another type", sent: jsonOf(`{"variables":[{"key":"A","tags":[{}]}],"owner":{"name":"x","age":"y"}}`),
			error: "variables[0][tags] is invalid, owner[age] is invalid"},
		{name: "elements that are no hashes", sent: jsonOf(`{"variables":["A"]}`), error: "variables is invalid"},
		{name: "a hash for a list", sent: jsonOf(`{"variables":{"key":"A"}}`), error: "variables is invalid"},
		{name: "text for a list of hashes", sent: query("variables=A"), error: "variables is invalid"},
		{name: "object", sent: form("owner[name]=x&owner[age]=3&other[name]=y"), want: params{Owner: owner{"x", 3}, Other: &owner{Name: "y"}}},
		{name: "object in json", sent: jsonOf(`{"owner":{"name":"x","age":3},"other":{"name":"y"}}`), want: params{Owner: owner{"x", 3}, Other: &owner{Name: "y"}}},
		{name: "object lacks a member", sent: form("owner[age]=3"), error: "owner[name] is missing"},
		{name: "blank object is none", sent: form("owner=&other=")},
		{name: "text for an object", sent: form("owner=x"), error: "owner is invalid"},
		{name: "list for an object", sent: form("owner[][name]=x"), error: "owner is invalid"},
		{name: "deeper conflict", sent: form("owner[name]=x&owner[name][y]=z"), error: "owner is invalid"},
		{name: "hash", sent: form("hash[a]=1&hash[b+c]=&hash[a]=2&counts[x]=3"), want: params{Hash: map[string]string{"a": "2", "b c": ""}, Counts: map[string]int64{"x": 3}}},
		{name: "hash in json", sent: jsonOf(`{"hash":{"a":2,"b c":null},"counts":{"x":3,"y":""}}`), want: params{Hash: map[string]string{"a": "2", "b c": ""}, Counts: map[string]int64{"x": 3, "y": 0}}},
		{name: "empty hash", sent: jsonOf(`{"hash":{}}`), want: params{Hash: map[string]string{}}},
		{name: "blank hash", sent: form("hash="), want: params{Hash: map[string]string{}}},
		{name: "errors keep the keys of a hash to themselves", sent: form("hash[<b>][x]=1&counts[<i>]=x"), error: "hash is invalid, counts is invalid"},
		{name: "key that is no text", sent: form("hash[%ff]=1"), error: "hash is invalid"},
		{name: "key with NUL", sent: jsonOf(`{"hash":{"\u0000":"1"}}`), error: "hash is invalid"},
		{name: "list for a hash", sent: form("hash[]=1"), error: "hash is invalid"},
	})
}

func TestBindJSON(t *testing.T) {
	t.Parallel()
	type params struct {
		A json.RawMessage      `param:"a"`
		O Opt[json.RawMessage] `param:"o"`
	}
	raw := func(text string) params { return params{A: json.RawMessage(text)} }
	runCases(t, []caseOf[params]{
		{name: "absent", sent: jsonOf(`{}`)},
		{name: "object", sent: jsonOf(`{"a":{"b":[1.50,true,null,"x\"\u0000"],"c":{}}}`), want: raw(`{"b":[1.50,true,null,"x\"\u0000"],"c":{}}`)},
		{name: "number", sent: jsonOf(`{"a":1e400}`), want: raw(`1e400`)},
		{name: "text of an object", sent: form(`a={"b":+1}`), want: raw(`{"b": 1}`)},
		{name: "steps of a form", sent: form(`a[b][]=1&a[b][]=2`), want: raw(`{"b":["1","2"]}`)},
		{name: "null", sent: jsonOf(`{"a":null,"o":null}`), want: params{O: Opt[json.RawMessage]{Set: true, Null: true}}},
		{name: "sent", sent: jsonOf(`{"o":[]}`), want: params{O: Opt[json.RawMessage]{Set: true, Value: json.RawMessage(`[]`)}}},
		{name: "text that is no JSON", sent: jsonOf(`{"a":"{"}`), error: "a is invalid"},
		{name: "text that is none", sent: query(`a[b]=%ff`), error: "a is invalid"},
		{name: "no value", sent: query(`a=1&a[]=2`), error: "a is invalid"},
	})
}
