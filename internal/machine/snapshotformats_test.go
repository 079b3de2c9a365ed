package machine

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/program"
)

// Snapshots and definitions stand in ledgers for years: a name in their JSON never changes, and a
// field that is added to them is added here. Each document of testdata/formats has every field of
// its type.
func TestDocumentsAreAFormat(t *testing.T) {
	t.Parallel()
	for name, doc := range map[string]any{"snapshot": &State{}, "definition": &program.Spec{}, "revised": &page{}, "forgotten": &lapse{}, "lost": &toll{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fill(t, reflect.ValueOf(doc).Elem(), name)
			got, err := json.MarshalIndent(doc, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", "formats", name+".json")
			if *rewrite {
				if err := os.WriteFile(file, append(got, '\n'), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.TrimSpace(string(want)) != string(got) {
				t.Errorf("the document is\n%s\nwant\n%s", got, want)
			}
			back := reflect.New(reflect.TypeOf(doc).Elem())
			if err := json.Unmarshal(want, back.Interface()); err != nil {
				t.Fatal(err)
			}
			if st, ok := doc.(*State); ok { // a chain's name is not in its snapshots
				back.Elem().FieldByName("ID").Set(reflect.ValueOf(st.ID))
			}
			again, err := json.MarshalIndent(back.Interface(), "", "  ")
			if err != nil || string(again) != string(got) {
				t.Errorf("it reads back as\n%s\n(%v)\nwant\n%s", again, err, got)
			}
		})
	}
}

// fill gives every field that v reaches a value that is not zero, and not that of its neighbours:
// it is made of the name the field has in the document.
func fill(t *testing.T, v reflect.Value, name string) {
	t.Helper()
	switch x := v.Addr().Interface().(type) {
	case *time.Time:
		*x = noon.Add(time.Duration(len(name)) * time.Second)
		return
	case *time.Duration:
		*x = time.Duration(len(name)) * time.Second
		return
	case *program.Duration:
		*x = program.Duration(len(name)) * program.Duration(time.Second)
		return
	case *json.RawMessage:
		*x = json.RawMessage(`"` + name + `"`)
		return
	case *[]byte:
		*x = []byte(name)
		return
	case *signalIDs:
		*x = signalIDs{7, 1<<62 + 1}
		return
	case *Hash:
		x[0] = 1
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(name)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(len(name)))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), name)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0), name)
	case reflect.Struct:
		for i := range v.NumField() {
			if !v.Type().Field(i).IsExported() { // no part of the format
				continue
			}
			key, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			fill(t, v.Field(i), key)
		}
	default:
		t.Fatalf("%s is a %s: say how it is filled", name, v.Type())
	}
}
