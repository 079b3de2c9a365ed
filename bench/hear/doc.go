// Package hear is the load of the inbox and the gate, and a bare insert of the same rows beside them.
package hear
