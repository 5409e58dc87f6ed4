package broker

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"reins/protocol"
)

func request(m protocol.Method, r protocol.ResourceID, args string) protocol.Request {
	return protocol.Request{Method: m, Resource: r, Arguments: json.RawMessage(args)}
}

// TestBudgetWrites: a turn has so many writes, each primitive of a list counts,
// and another turn, or another owner's turn of that name, has its own.
func TestBudgetWrites(t *testing.T) {
	b := budgets{writes: 4, urls: -1}
	a := protocol.Caller{Owner: "a", Connection: "c1", UserTurn: "t1"}
	press := request(protocol.MethodPress, "pg_1", `{"key":"Enter"}`)
	list := request(protocol.MethodBatch, "pg_1", `{"primitives":[{"method":"press","arguments":{"key":"a"}},{"method":"press","arguments":{"key":"b"}},{"method":"press","arguments":{"key":"c"}}]}`)
	for i, r := range []protocol.Request{press, list} {
		if p := b.spend(a, r); p != nil {
			t.Fatal(i, p)
		}
	}
	if p := b.spend(a, press); p == nil || p.Reason != protocol.ReasonBudget {
		t.Fatalf("the fifth is %v", p)
	}
	for _, c := range []protocol.Caller{{Owner: "a", Connection: "c1", UserTurn: "t2"}, {Owner: "b", Connection: "c2", UserTurn: "t1"}, {Owner: "a", Connection: "c1"}} {
		if p := b.spend(c, press); p != nil {
			t.Fatal(c, p)
		}
	}
	b.sweep(time.Now().Add(turnMemory + time.Minute))
	if p := b.spend(a, press); p != nil {
		t.Fatal("a turn of yesterday is remembered", p)
	}
}

// TestBudgetURLs: distinct addresses on a Page, fragments not counted.
func TestBudgetURLs(t *testing.T) {
	b := budgets{writes: -1, urls: 2}
	a := protocol.Caller{Owner: "a", UserTurn: "t1"}
	visit := func(r protocol.ResourceID, u string) *protocol.Problem {
		return b.spend(a, request(protocol.MethodNavigate, r, fmt.Sprintf(`{"url":%q}`, u)))
	}
	for _, u := range []string{"http://x.test/1", "http://x.test/1#part", "http://x.test/2", "http://x.test/2", "http://x.test/1"} {
		if p := visit("pg_1", u); p != nil {
			t.Fatal(u, p)
		}
	}
	if p := visit("pg_1", "http://x.test/3"); p == nil || p.Reason != protocol.ReasonBudget {
		t.Fatalf("the third is %v", p)
	}
	if p := visit("pg_2", "http://x.test/3"); p != nil {
		t.Fatal("another Page has its own", p)
	}
}

// TestBudgetNone: −1 is no budget.
func TestBudgetNone(t *testing.T) {
	b := budgets{writes: -1, urls: -1}
	for i := range 500 {
		if p := b.spend(protocol.Caller{Owner: "a"}, request(protocol.MethodNavigate, "pg_1", fmt.Sprintf(`{"url":"http://x.test/%d"}`, i))); p != nil {
			t.Fatal(i, p)
		}
	}
}
