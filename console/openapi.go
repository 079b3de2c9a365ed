package console

import (
	_ "embed"
	"net/url"
	"strings"
)

// openAPI is the description of /api/v1. A test makes it of the table of routes, and compares.
//
//go:embed openapi.json
var openAPI []byte

// filledPath is a path with its parts, each escaped.
func filledPath(path string, parts ...string) string {
	i := 0
	for name := range partsOf(path) {
		path = strings.Replace(path, "{"+name+"}", url.PathEscape(parts[i]), 1)
		i++
	}
	return path
}
