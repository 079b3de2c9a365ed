package store_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amends-dev/amends/store"
)

func open(ctx context.Context, address string) (store.DB, error) {
	keys, err := store.KeysIn("/etc/shop/amends.keys") // a line for each: 2026-11 and the output of openssl rand -base64 32
	if err != nil {
		return nil, err
	}
	return store.Open(ctx, address, &store.Options{Keys: keys})
}

func ExampleKeysIn() {
	_, err := open(context.Background(), "shop.db")
	fmt.Println(err)
	// Output: read keys: open /etc/shop/amends.keys: no such file or directory
}

// All that is wrong with a file of keys is said at once, and without the keys.
func TestKeysIn(t *testing.T) {
	t.Parallel()
	key := func() string {
		b := make([]byte, store.KeySize)
		_, _ = rand.Read(b)
		return base64.StdEncoding.EncodeToString(b)
	}
	first, second := key(), key()
	for text, wrong := range map[string]string{
		"a " + first + "\n\nb " + second + "\nc\n": "",
		"a " + first + "\na " + second:             `line 2: there is a key "a" already`,
		"a " + first[:20] + "\nb " + second + "=":  "line 2: key \"b\"",
		"": "there is none that seals", "a\n": "there is none that seals",
	} {
		file := filepath.Join(t.TempDir(), "keys")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		keys, err := store.KeysIn(file)
		switch {
		case (err == nil) != (wrong == ""), err != nil && (!strings.Contains(err.Error(), wrong) || strings.Contains(err.Error(), first[:20])):
			t.Errorf("%q: %v", text, err)
		case err != nil:
			continue
		}
		if id, err := keys.Sealing("customer:7"); id != "b" || err != nil {
			t.Errorf("%q seals, %v", id, err)
		}
		if lost, err := keys.Key("c"); lost != nil || err != nil {
			t.Errorf("a destroyed key is %q, %v", lost, err)
		}
		if _, err := keys.Key("d"); err == nil {
			t.Error("a key that is not there counts as destroyed")
		}
	}
}
