//go:build linux

package hostlock

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMain is also a process that holds a lock until its standard input ends, or it is killed.
func TestMain(m *testing.M) {
	dir := os.Getenv("HOSTLOCK_DIR")
	if dir == "" {
		os.Exit(m.Run())
	}
	l, err := Hold(dir)
	if err != nil {
		panic(err)
	}
	if _, err := os.Stdout.WriteString(l.Name() + "\n"); err != nil {
		panic(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until it ends
}

// holder starts a process that holds a lock in dir.
func holder(t *testing.T, dir string) (p *exec.Cmd, lock string) {
	t.Helper()
	p = exec.Command(os.Args[0])
	p.Env = append(os.Environ(), "HOSTLOCK_DIR="+dir)
	in, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill(); _ = in.Close(); _ = p.Wait() })
	lock, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return p, lock
}

func gone(t *testing.T, lock string) bool {
	t.Helper()
	l, is := Gone(lock)
	if is {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	return is
}

// A process is gone when it was killed, and not while it is merely stopped. (It starts a process, which has every open file of this one until
// it runs its own program: beside it no lock of this process is free for certain. So none of the tests of locks runs beside another.)
func TestGone(t *testing.T) {
	p, lock := holder(t, t.TempDir())
	if gone(t, lock) {
		t.Error("a process that lives is gone")
	}
	if err := p.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if gone(t, lock) {
		t.Error("a process that is stopped is gone")
	}
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait() // it was killed
	l, is := Gone(lock)
	if !is {
		t.Fatal("a process that was killed is not gone")
	}
	if gone(t, lock) {
		t.Error("two are told, while the first has not put it on record")
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
	if gone(t, lock) {
		t.Error("its file was removed, and proves it")
	}
}

// Whatever leaves a doubt proves nothing.
func TestDoubtProvesNothing(t *testing.T) {
	dir := t.TempDir()
	l, err := Hold(dir)
	if err != nil {
		t.Fatal(err)
	}
	n := l.name
	if err := l.Close(); err != nil { // as its end does
		t.Fatal(err)
	}
	if !gone(t, l.Name()) {
		t.Fatal("its lock is free, and it is not gone")
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(n.Path, link); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*name){
		"another kernel":   func(n *name) { n.Boot = "another" },
		"another file":     func(n *name) { n.Inode++ },
		"another device":   func(n *name) { n.Device++ },
		"no such file":     func(n *name) { n.Path += "x" },
		"a symbolic link":  func(n *name) { n.Path = link },
		"no name":          func(n *name) { *n = name{} },
		"a file in /proc":  func(n *name) { n.Path = "/proc/self/comm" },
		"a directory":      func(n *name) { n.Path = dir },
		"one of no kernel": func(n *name) { n.Boot = "" },
	} {
		other := n
		change(&other)
		b, err := json.Marshal(other)
		if err != nil {
			t.Fatal(err)
		}
		if gone(t, string(b)) {
			t.Errorf("%s proves that the process is gone", what)
		}
	}
	if err := os.Rename(n.Path, n.Path+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(n.Path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if gone(t, l.Name()) {
		t.Error("a file that was made since proves that the process is gone")
	}
}

// No lock is believed on a file system that other hosts may see, or that is not known.
func TestOnlyLocalFileSystems(t *testing.T) {
	t.Parallel()
	for what, magic := range map[string]int64{
		"NFS": unix.NFS_SUPER_MAGIC, "SMB": unix.SMB_SUPER_MAGIC, "SMB 2": unix.SMB2_SUPER_MAGIC, "CIFS": unix.CIFS_SUPER_MAGIC,
		"FUSE": unix.FUSE_SUPER_MAGIC, "9P": unix.V9FS_MAGIC, "Ceph": unix.CEPH_SUPER_MAGIC, "AFS": unix.AFS_SUPER_MAGIC, "unknown": 1,
	} {
		if local(magic) {
			t.Errorf("%s counts as local", what)
		}
	}
	if l, err := Hold("/proc/self"); err == nil {
		t.Errorf("held %s", l.Path())
	}
	if l, err := Hold("/proc/self/no"); err == nil {
		t.Errorf("held %s", l.Path())
	}
}
