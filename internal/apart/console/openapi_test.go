package console_test

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/amends-dev/amends/internal/pace"
)

// document is what the console says of /api/v1.
func (w *world) document(name string) []byte {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.server.URL+"/api/v1/"+name, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		w.t.Fatal(answer.Status, err)
	}
	return raw
}

// The document of /api/v1 is valid. It is read in its form of OpenAPI 3.0, which is made of that of 3.1.
func TestTheDocumentIsValid(t *testing.T) {
	t.Parallel()
	doc, err := openapi3.NewLoader().LoadFromData(newWorld(t).document("openapi-3.0.json"))
	if err == nil {
		err = doc.Validate(t.Context())
	}
	if err != nil {
		t.Error(err)
	}
}

// Clients in Go and TypeScript are generated of them, and compile.
func TestClientsCompile(t *testing.T) {
	t.Parallel()
	pace.Night(t)
	w := newWorld(t)
	dir := t.TempDir()
	put := func(name string, raw []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(name string, args ...string) []byte {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s%s", name, args, err, out, &errs)
		}
		return out
	}
	put("3.1.json", w.document("openapi.json"))
	put("3.0.json", w.document("openapi-3.0.json"))
	put("go.mod", []byte("module clients\n\ngo 1.26\n"))
	for _, folder := range []string{"oapi", "ogen"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	put("oapi/client.go", run("go", "run", "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2", "-generate", "types,client", "-package", "oapi", "3.0.json"))
	run("go", "run", "github.com/ogen-go/ogen/cmd/ogen@v1.24.0", "--target", "ogen", "--package", "ogen", "3.0.json")
	run("go", "mod", "tidy")
	run("go", "build", "./...")
	if _, err := exec.LookPath("npx"); err != nil {
		t.Skip("there is no npx: the client in TypeScript is not made")
	}
	run("npm", "install", "--no-save", "openapi-typescript@7.13.0", "typescript@5.9.3")
	run("npx", "openapi-typescript", "3.1.json", "-o", "client.d.ts")
	run("npx", "tsc", "--noEmit", "--strict", "client.d.ts")
}
