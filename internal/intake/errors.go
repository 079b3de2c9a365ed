package intake

import "errors"

// ErrNotFound matches the error of a reader that was asked for a delivery that is not there.
var ErrNotFound = errors.New("no such delivery")
