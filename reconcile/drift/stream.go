package drift

import "fmt"

// Stream hands out rows in the order of the bytes of their keys: each call sets all of its argument and reports
// true, or reports false at the end. Whatever it cannot read is an error, never an end.
type Stream[T any] func(*T) (bool, error)

// Pages makes a stream of pages. next returns at most limit rows with keys behind after, in the order of their keys;
// fewer mean that these are the last. A page may end in the middle of a key: what belongs to that key is read once
// more, with the next page.
func Pages[T any](limit int, key func(*T) string, next func(after string, limit int) ([]T, error)) Stream[T] {
	p := &pages[T]{limit: max(limit, 2), key: key, next: next}
	return p.row
}

// Rows makes a stream of rows that are at hand.
func Rows[T any](rows []T) Stream[T] {
	return func(row *T) (bool, error) {
		if len(rows) == 0 {
			return false, nil
		}
		*row, rows = rows[0], rows[1:]
		return true, nil
	}
}

type pages[T any] struct {
	limit int
	key   func(*T) string
	next  func(after string, limit int) ([]T, error)

	page  []T
	after string
	last  bool // there is no page behind this one
}

func (p *pages[T]) row(row *T) (bool, error) {
	if len(p.page) == 0 {
		if p.last {
			return false, nil
		}
		if err := p.turn(); err != nil {
			return false, err
		}
		if len(p.page) == 0 {
			return false, nil
		}
	}
	*row, p.page = p.page[0], p.page[1:]
	return true, nil
}

// turn reads the next page, and takes off its end the rows of a key of which there may be more.
func (p *pages[T]) turn() error {
	for limit := p.limit; ; limit *= 2 {
		page, err := p.next(p.after, limit)
		if err != nil {
			return err
		}
		if p.last = len(page) < limit; p.last {
			p.page = page
			return nil
		}
		cut := len(page) - 1
		for key := p.key(&page[cut]); cut > 0 && p.key(&page[cut-1]) == key; {
			cut--
		}
		if cut > 0 { // else the whole page is one key
			p.page, p.after = page[:cut], p.key(&page[cut-1])
			return nil
		}
	}
}

// cursor is a stream with its next row.
type cursor[T any] struct {
	side string
	next Stream[T]
	key  func(*T) string
	row  T
	more bool  // row is one
	read int64 // rows so far
}

// advance reads the next row, and refuses one that is not in order: it would have been taken for absent.
func (c *cursor[T]) advance() error {
	last := c.key(&c.row)
	var err error
	if c.more, err = c.next(&c.row); err != nil {
		return fmt.Errorf("read the %s: %w", c.side, err)
	}
	if !c.more {
		return nil
	}
	if key := c.key(&c.row); key < last {
		return fmt.Errorf("the %s is not in the order of its keys: %q came after %q; nothing can be concluded from it", c.side, key, last)
	}
	c.read++
	return nil
}
