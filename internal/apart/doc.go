// Package apart is a module of its own, with the tests that need what no user of the library needs: a browser's driver, and the
// SDK of OpenTelemetry. In the first module they would stand in the list of modules of each program that imports amends.
package apart
