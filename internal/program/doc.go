// Package program is the seam between definitions (package saga), the machine that decides about
// them and the coordinator that runs them: the structure of a definition, and what goes into one
// attempt or lookup and comes out of it.
package program
