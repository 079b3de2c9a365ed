// Package report turns the samples of interleaved rounds into medians, a table
// for people and lines of JSON for machines.
package report
