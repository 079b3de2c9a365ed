//go:build !unix

package pgtest

import (
	"errors"
	"syscall"
)

type user struct{}

func (user) own(string) error { return nil }

// serverUser: the guard is a shell script, so a private cluster needs a Unix.
func serverUser() (*syscall.SysProcAttr, user, error) {
	return nil, user{}, errors.New("a private PostgreSQL cluster needs a Unix: set " + Env + " to the URL of a server")
}
