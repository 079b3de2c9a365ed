// Package house holds the rules of who may import whom, as a test.
//
// The rooms and their order are written down once, in the constant policy of
// policy_test.go, and read from there. The test looks at the import lines of every
// file of the repository, whatever its build tags, and at nothing else.
//
// A package without a place in the policy fails the test. Give it one: name the
// room in the line that says what it may import, and think about who will import
// it. A dependency on another module needs a place as well.
package house
