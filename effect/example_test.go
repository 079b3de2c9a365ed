package effect_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/amends-dev/amends/effect"
	"github.com/amends-dev/amends/saga"
)

// An action sends one request under the key of its step, and returns the error as it is. A lookup tells
// "not there" from every other answer.
func Example() {
	books := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusNotFound)
		case r.Header.Get("Idempotency-Key") == "":
			w.WriteHeader(http.StatusBadRequest)
		default:
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"id":"inv_5530"}`)
		}
	}))
	defer books.Close()

	client, err := effect.New(books.URL+"/api/v1", &effect.Options{
		Header:      http.Header{"Authorization": {"Bearer secret"}},
		NotExecuted: []int{429, 503}, // this destination's 503 means "not executed"
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	type invoice struct {
		ID string `json:"id"`
	}
	create := func(ctx context.Context, key string) (made invoice, err error) {
		_, err = client.Do(ctx, effect.Request{
			Method: "POST", Path: "/invoices", Key: key,
			Body: map[string]any{"reference": "shop:order:10492", "total": 42}, Into: &made,
		})
		return made, err
	}
	find := func(ctx context.Context, reference string) (found bool, err error) {
		_, err = client.Do(ctx, effect.Request{Method: "GET", Path: effect.Path("invoices", reference)})
		if effect.Status(err) == http.StatusNotFound {
			return false, nil
		}
		return err == nil, err
	}

	found, err := find(context.Background(), "shop:order:10492")
	fmt.Println(found, err)
	made, err := create(context.Background(), "k-10492")
	fmt.Println(made.ID, err)
	_, err = create(context.Background(), "")
	class, _ := saga.Classify(err)
	fmt.Println(err, "is", class)
	// Output:
	// false <nil>
	// inv_5530 <nil>
	// POST /invoices answered 400 Bad Request is refused
}
