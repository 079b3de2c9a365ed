package witness

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strings"
)

// Folder is a witness that has a file for each ledger.
type Folder string

// Read returns what the file of a ledger has.
func (d Folder) Read(_ context.Context, id string) ([]byte, error) {
	raw, err := os.ReadFile(d.file(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return raw, err
}

// Write replaces the file of a ledger as a whole.
func (d Folder) Write(_ context.Context, id string, mark []byte) error {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(string(d), ".mark-*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(mark, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), d.file(id))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

func (d Folder) file(id string) string { return filepath.Join(string(d), filepath.Base(id)) }

// Default is the folder for what a service keeps on its host: what systemd gives it (StateDirectory=), else
// amends in XDG_STATE_HOME, else ~/.local/state/amends.
func Default() (Folder, error) {
	if d, _, _ := strings.Cut(os.Getenv("STATE_DIRECTORY"), ":"); filepath.IsAbs(d) {
		return Folder(d), nil
	}
	if d := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(d) {
		return Folder(filepath.Join(d, "amends")), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		if u, uerr := user.Current(); uerr == nil {
			home, err = u.HomeDir, nil
		}
	}
	if err != nil || !filepath.IsAbs(home) {
		return "", fmt.Errorf("there is no folder for what outlives a restart: this user has no home (%w)", err)
	}
	return Folder(filepath.Join(home, ".local", "state", "amends")), nil
}
