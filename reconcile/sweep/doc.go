// Package sweep reads a source of truth and a destination from one end to the other.
package sweep
