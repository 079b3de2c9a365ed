// Package tee makes one listener of several. A listener is a struct of functions that return nothing; those that are nil are skipped.
package tee

import "reflect"

// Of is a listener that tells each of all, in order. Nil ones are skipped.
func Of[L any](all ...*L) *L {
	told := new(L)
	functions := reflect.ValueOf(told).Elem()
	for i := range functions.NumField() {
		function := functions.Field(i)
		function.Set(reflect.MakeFunc(function.Type(), func(args []reflect.Value) []reflect.Value {
			for _, l := range all {
				if l == nil {
					continue
				}
				if tell := reflect.ValueOf(l).Elem().Field(i); !tell.IsNil() {
					tell.Call(args)
				}
			}
			return nil
		}))
	}
	return told
}
