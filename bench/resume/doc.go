// Package resume is a process that is killed with many instances in flight, and the one that goes on
// for it. Everything is at its default but the log, which goes nowhere.
package resume
