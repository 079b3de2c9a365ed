package plan

import "fmt"

// Stream hands out rows in the order of the bytes of their keys: each call sets all of its argument
// and reports true, or reports false at the end. Whatever it cannot read is an error, never an end.
type Stream[T any] func(*T) (bool, error)

// Pages makes a stream of pages. next returns at most limit rows behind last, in order; last is nil
// for the first page, and fewer rows mean that these are the last. It gets pages of its own: what
// it returned once stays as it is.
func Pages[T any](limit int, next func(last *T, limit int) ([]T, error)) Stream[T] {
	var (
		page []T
		last *T
		end  bool
	)
	return func(row *T) (bool, error) {
		if len(page) == 0 {
			if end {
				return false, nil
			}
			var err error
			if page, err = next(last, limit); err != nil {
				return false, err
			}
			if end = len(page) < limit; len(page) == 0 {
				return false, nil
			}
			last = &page[len(page)-1]
		}
		*row, page = page[0], page[1:]
		return true, nil
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

// advance reads the next row, and refuses one that is not in order: it would have been taken for
// absent.
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
