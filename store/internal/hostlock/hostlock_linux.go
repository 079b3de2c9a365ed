package hostlock

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Lock is a file that this process keeps locked.
type Lock struct {
	file *os.File
	name name
}

// name says which file a lock is, to processes of the same kernel.
type name struct {
	Boot   string `json:"boot"`
	Path   string `json:"path"`
	Device uint64 `json:"device,string"`
	Inode  uint64 `json:"inode,string"`
}

// Hold makes a file in dir and locks it. A directory that is not there is made, for its owner only.
func Hold(dir string) (*Lock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, "*.lock")
	if err != nil {
		return nil, err
	}
	l := &Lock{file: f}
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		l.name, err = nameOf(f)
	}
	if err != nil {
		_ = l.Release()
		return nil, err
	}
	return l, nil
}

// Name is what [Gone] takes.
func (l *Lock) Name() string {
	b, err := json.Marshal(l.name)
	if err != nil { // it holds texts and numbers
		return ""
	}
	return string(b)
}

// Path is where the file is.
func (l *Lock) Path() string { return l.file.Name() }

// Close gives the lock back and leaves the file.
func (l *Lock) Close() error { return l.file.Close() }

// Release removes the file and gives the lock back: there is nothing more to be proven by it.
func (l *Lock) Release() error { return errors.Join(os.Remove(l.file.Name()), l.file.Close()) }

// Gone reports whether the process that held the lock of that name is proven to have ended. It
// returns the lock then: what follows from it is put on record before it is released.
func Gone(lock string) (*Lock, bool) {
	var n name
	if json.Unmarshal([]byte(lock), &n) != nil || n.Boot == "" {
		return nil, false
	}
	f, err := os.OpenFile(n.Path, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, false
	}
	if is, err := nameOf(f); err != nil || is != n || unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		_ = f.Close() // it was only looked at
		return nil, false
	}
	return &Lock{f, n}, true
}

// nameOf names an open file, or says why its lock proves nothing.
func nameOf(f *os.File) (name, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return name{}, err
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &fs); err != nil {
		return name{}, err
	}
	if !local(int64(fs.Type)) { //nolint:unconvert // its type differs by architecture
		return name{}, fmt.Errorf("%s is on a file system (type %#x) that is not known to be this host's own", f.Name(), fs.Type)
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return name{}, err
	}
	return name{strings.TrimSpace(string(boot)), f.Name(), uint64(st.Dev), st.Ino}, nil //nolint:unconvert // as above
}

// zfs is the magic number of ZFS, which is not part of the kernel.
const zfs = 0x2fc12fc1

// local reports whether a file system is one host's own.
func local(magic int64) bool {
	return slices.Contains([]int64{
		unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.BCACHEFS_SUPER_MAGIC,
		unix.TMPFS_MAGIC, unix.RAMFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, zfs,
	}, magic)
}
