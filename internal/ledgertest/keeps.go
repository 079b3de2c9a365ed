package ledgertest

import "context"

// Keeps makes a [ledger.Eraser] of a ledger that erases nothing.
type Keeps struct{}

// Hide leaves a name as it is.
func (Keeps) Hide(name string) string { return name }

// Unname finds none.
func (Keeps) Unname(context.Context) (int, error) { return 0, nil }

// ForgetWaits finds none.
func (Keeps) ForgetWaits(context.Context) (int, error) { return 0, nil }

// EraseLater forgets it.
func (Keeps) EraseLater(context.Context, []int64) error { return nil }
