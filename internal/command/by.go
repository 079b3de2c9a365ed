package command

import (
	"os"
	"os/user"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/saga"
)

// byFlags are the flags by which a person says who acts, and why.
func byFlags(cmd *cobra.Command, by *saga.Actor, why string) {
	fl := cmd.Flags()
	fl.StringVar(&by.Reason, "reason", "", why)
	fl.StringVar(&by.Name, "actor", "", "who says so (default: the user of the operating system)")
}

// byFaults completes by and says what is missing.
func byFaults(by *saga.Actor) []string {
	var wrong []string
	if strings.TrimSpace(by.Reason) == "" {
		wrong = append(wrong, `say why: --reason "…"`)
	}
	if by.Name = strings.TrimSpace(by.Name); by.Name == "" {
		by.Name = osUser()
	}
	if by.Name == "" {
		wrong = append(wrong, "say who you are: --actor NAME")
	}
	return wrong
}

func osUser() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return os.Getenv("USER") // a container may know no user by our number
}
