package command

import "fmt"

// page cuts items to the limit, and reports whether there were more. The caller lists one item more
// than the limit for this.
func page[T any](items []T, limit int) ([]T, bool) {
	return items[:min(len(items), limit)], len(items) > limit
}

// listOf is a list that has no pages.
type listOf[J any] struct {
	Items []J `json:"items"`
}

// listing is one page as JSON. Next is what the next page is asked for with; null on the last one.
type listing[J any] struct {
	Items []J     `json:"items"`
	Next  *string `json:"next"`
}

func listed[T, J, K any](items []T, more bool, toJSON func(*T) J, key func(*T) K) listing[J] {
	l := listing[J]{Items: make([]J, len(items))}
	for i := range items {
		l.Items[i] = toJSON(&items[i])
	}
	if more {
		var last *T
		if len(items) > 0 {
			last = &items[len(items)-1]
		}
		next := fmt.Sprint(key(last)) // a text, whatever it is
		l.Next = &next
	}
	return l
}
