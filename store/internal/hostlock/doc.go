// Package hostlock proves that a process of this host has ended, by a file that it had locked.
//
// A process holds one [Lock] for as long as it lives, and puts its name on record. Another that runs
// on the same kernel, finds the very file that the name speaks of, and gets its lock, knows that the
// first has ended: the kernel gives a lock back with the last descriptor of its file, not earlier. A
// process that is merely stopped keeps it.
//
// Whatever leaves a doubt proves nothing: another kernel (the name has its boot id), another file of
// that path (it has its device and inode), a file system that may be shared with other hosts, or whose
// locks can be lost (it is none that is known to be local), a file that is gone, an operating
// system other than Linux.
package hostlock
