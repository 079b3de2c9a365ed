// Package docs has the pages that the command shows, too.
package docs

import _ "embed"

// Situations is situations.md: every situation that a person meets, and what to do in it.
//
//go:embed situations.md
var Situations string
