package sagahttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/sagahttp"
)

// An action sends one request under the key of its step, and returns the error as it is. A lookup
// tells "not there" from every other answer.
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

	client, err := sagahttp.New(books.URL+"/api/v1", &sagahttp.Options{
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
		_, err = client.Do(ctx, sagahttp.Request{
			Method: "POST", Path: "/invoices", Key: key,
			Body: map[string]any{"reference": "shop:order:10492", "total": 42}, Into: &made,
		})
		return made, err
	}
	find := func(ctx context.Context, reference string) (found bool, err error) {
		_, err = client.Do(ctx, sagahttp.Request{Method: "GET", Path: sagahttp.Path("invoices", reference)})
		if sagahttp.Status(err) == http.StatusNotFound {
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

// A GraphQL end: queries are sent by POST and only read, and errors come inside a 200.
func Example_graphQL() {
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Idempotency-Key") == "" {
			fmt.Fprint(w, `{"data":{"order":{"id":"10492"}}}`)
			return
		}
		fmt.Fprint(w, `{"errors":[{"message":"slow down","extensions":{"code":"THROTTLED"}}]}`)
	}))
	defer shop.Close()

	client, err := sagahttp.New(shop.URL, &sagahttp.Options{
		CheckResponse: func(r *sagahttp.Response) error {
			var a struct {
				Errors []struct {
					Message    string
					Extensions struct{ Code string }
				}
			}
			if json.Unmarshal(r.Body, &a) != nil || len(a.Errors) == 0 {
				return nil //nolint:nilerr // what is no JSON says no error
			}
			err := errors.New(a.Errors[0].Message)
			switch a.Errors[0].Extensions.Code {
			case "BAD_USER_INPUT":
				return saga.Permanent(err)
			case "THROTTLED":
				return saga.HoldBack(saga.RetryAfter(2*time.Second, saga.NotSent(err)))
			}
			return err // unknown
		},
		NotExecutedCodes: []string{"THROTTLED"}, // by which this destination promises that it did nothing
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	type graphQL struct {
		Query string `json:"query"`
	}
	var found struct {
		Data struct{ Order struct{ ID string } }
	}
	_, err = client.Do(context.Background(), sagahttp.Request{
		Method: "POST", Path: "/graphql", Reads: true, Body: graphQL{`{ order(id: "10492") { id } }`}, Into: &found,
	})
	fmt.Println(found.Data.Order.ID, err)

	_, err = client.Do(context.Background(), sagahttp.Request{
		Method: "POST", Path: "/graphql", Key: "k-10492", Body: graphQL{`mutation { ship(id: "10492") { id } }`},
	})
	class, wait := saga.Classify(err)
	fmt.Println(err, "is", class, "and waits", wait)
	// Output:
	// 10492 <nil>
	// POST /graphql answered 200 OK: slow down is not-sent and waits 2s
}
