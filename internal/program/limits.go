package program

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits of a definition and of what a work may carry.
const (
	MaxName   = 64        // characters of a saga's or a step's name
	MaxWork   = 256       // bytes of a work id
	MaxInput  = 256 << 10 // bytes of a work's input as JSON
	MaxOutput = 64 << 10  // bytes of a step's result as JSON; larger results are not kept
	MaxSteps  = 64        // of one definition
	MaxAnswer = 64 << 10  // bytes of a message or a callback
)

// CheckWork reports what is wrong with a work id, or nil.
func CheckWork(work string) error {
	var faults []error
	if work == "" {
		faults = append(faults, errors.New("the work id is empty; it is the business identity, like shop:order:10492"))
	}
	if len(work) > MaxWork {
		faults = append(faults, fmt.Errorf("the work id has %d bytes; at most %d are allowed", len(work), MaxWork))
	}
	if !utf8.ValidString(work) || strings.ContainsFunc(work, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		faults = append(faults, errors.New("the work id has control characters or is not valid UTF-8"))
	}
	return errors.Join(faults...)
}
