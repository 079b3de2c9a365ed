//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"os"
	osuser "os/user"
	"strconv"
	"syscall"
)

// user is who the server runs as: another one when we are root.
type user struct {
	uid, gid int
	other    bool
}

// own gives a file to the user.
func (u user) own(path string) error {
	if !u.other {
		return nil
	}
	return os.Chown(path, u.uid, u.gid)
}

// serverUser decides who the server runs as, and how its processes are started: in
// a session of their own, which no Ctrl-C of ours reaches.
func serverUser() (*syscall.SysProcAttr, user, error) {
	attr := &syscall.SysProcAttr{Setsid: true}
	if os.Geteuid() != 0 {
		return attr, user{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		account, err := osuser.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.Atoi(account.Uid)
		gid, errGID := strconv.Atoi(account.Gid)
		if err := errors.Join(errUID, errGID); err != nil {
			return nil, user{}, fmt.Errorf("user %s: %w", name, err)
		}
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return attr, user{uid: uid, gid: gid, other: true}, nil
	}
	return nil, user{}, errors.New("PostgreSQL refuses to run as root, and there is neither a user postgres nor an unprivileged system user: run as another user")
}
