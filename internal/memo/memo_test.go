package memo_test

import (
	"context"
	"errors"
	"testing"

	"svc/internal/memo"
)

type key int
type otherKey int

func TestGet(t *testing.T) {
	t.Parallel()
	reads := 0
	get := func(ctx context.Context, k key) int {
		v, err := memo.Get(ctx, k, func() (int, error) { reads++; return reads, nil })
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if a, b := get(t.Context(), 1), get(t.Context(), 1); a != 1 || b != 2 {
		t.Errorf("without a page: %d, %d", a, b)
	}
	page := memo.With(t.Context())
	if a, b, c := get(page, 1), get(page, 1), get(page, 2); a != 3 || b != 3 || c != 4 {
		t.Errorf("on a page: %d, %d and for another key %d", a, b, c)
	}
	if a := get(memo.With(t.Context()), 1); a != 5 {
		t.Errorf("another page: %d", a)
	}
	if v, err := memo.Get(page, otherKey(1), func() (string, error) { return "other", nil }); v != "other" || err != nil {
		t.Errorf("a key of another type: %q, %v", v, err)
	}
	memo.Put(page, key(1), 70)
	if a := get(page, 1); a != 70 {
		t.Errorf("after Put: %d", a)
	}
	if on := memo.On(page); !on {
		t.Error("a page is not on")
	}
	failed := errors.New("failed")
	if _, err := memo.Get(page, key(3), func() (int, error) { return 0, failed }); !errors.Is(err, failed) {
		t.Errorf("error %v", err)
	}
	if a := get(page, 3); a != 6 {
		t.Errorf("after an error: %d", a)
	}
	memo.End(page)
	if a, b := get(page, 1), get(page, 1); memo.On(page) || a != 7 || b != 8 {
		t.Errorf("after the page: %d, %d", a, b)
	}
}
