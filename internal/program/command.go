package program

import "strings"

// Command is a command line for a person to copy: a verb of amends that is about one work. The flags
// begin with a space. A work id that looks like a flag comes last, behind "--", so that it is a name.
func Command(verb, work, flags string) string {
	if strings.HasPrefix(work, "-") {
		return "amends " + verb + flags + " -- " + quoted(work) // in quotes, so that it is seen where it ends
	}
	return "amends " + verb + " " + Word(work) + flags
}

// Word makes s one word of a shell's command line.
func Word(s string) string {
	special := func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune("_-./:=,@%+", r)
	}
	if s != "" && !strings.ContainsFunc(s, special) {
		return s
	}
	return quoted(s)
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
