package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// visitor is a person at the shop who has no browser.
type visitor struct {
	t    *testing.T
	app  *App
	http *http.Client
}

func newVisitor(t *testing.T) *visitor {
	t.Helper()
	srv := httptest.NewUnstartedServer(nil)
	app := NewApp(srv.Listener.Addr().(*net.TCPAddr).Port)
	srv.Config.Handler = app
	srv.Start()
	t.Cleanup(srv.Close)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &visitor{t: t, app: app, http: &http.Client{Jar: jar, Transport: srv.Client().Transport}}
}

func (v *visitor) do(r *http.Request) (int, string) {
	v.t.Helper()
	got, err := v.http.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return got.StatusCode, string(body)
}

func (v *visitor) get(path string) (int, string) {
	v.t.Helper()
	r, err := http.NewRequest("GET", strings.TrimSuffix(v.app.URL(), "/")+path, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	return v.do(r)
}

func (v *visitor) post(path string, form ...string) (int, string) {
	v.t.Helper()
	base := strings.TrimSuffix(v.app.URL(), "/")
	if path == "/pay" {
		base = v.app.payOrigin()
	}
	values := url.Values{}
	for i := 0; i < len(form); i += 2 {
		values.Set(form[i], form[i+1])
	}
	r, err := http.NewRequest("POST", base+path, strings.NewReader(values.Encode()))
	if err != nil {
		v.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return v.do(r)
}

func (v *visitor) want(wantStatus int, part string, status int, body string) {
	v.t.Helper()
	if status != wantStatus || !strings.Contains(body, part) {
		v.t.Fatalf("got %d %q, want %d with %q", status, body, wantStatus, part)
	}
}

func (v *visitor) ledger() Ledger {
	v.t.Helper()
	_, body := v.get("/ledger")
	var l Ledger
	if err := json.Unmarshal([]byte(body), &l); err != nil {
		v.t.Fatal(err)
	}
	return l
}

func (v *visitor) payToken() string {
	v.t.Helper()
	_, body := v.get("/checkout")
	_, after, found := strings.Cut(body, "/pay?for=")
	token, _, _ := strings.Cut(after, `"`)
	if !found || token == "" {
		v.t.Fatalf("no payment frame in %q", body)
	}
	return token
}

// buy goes from the list to the order page.
func (v *visitor) buy() {
	v.t.Helper()
	status, body := v.get("/")
	v.want(200, "Loading the list", status, body)
	status, body = v.get("/api/products")
	v.want(200, "Field notebook", status, body)
	status, body = v.post("/basket", "product", "field-notebook")
	v.want(200, "Your basket", status, body)
	token := v.payToken()
	status, body = v.post("/api/details", "name", "Ada Byron", "email", "ada@example.org", "quantity", "2", "delivery", "express")
	v.want(200, "€34.90", status, body)
	status, body = v.post("/pay", "for", token, "number", "4242 4242 4242 4242", "expiry", "12/29", "code", "123")
	v.want(200, "4242", status, body)
	status, body = v.post("/api/order")
	v.want(200, "/orders/1001", status, body)
}

func TestLedgerSeesEachActionOnce(t *testing.T) {
	v := newVisitor(t)
	v.buy()
	status, body := v.get("/orders/1001")
	v.want(200, "Thank you, Ada Byron", status, body)
	status, invoice := v.get("/orders/1001/invoice")
	v.want(200, "%PDF-1.4", status, invoice)
	l := v.ledger()
	for _, a := range Actions {
		if l.Counts[a] != 1 {
			t.Errorf("%s was counted %d times, want 1", a, l.Counts[a])
		}
	}
	if got := sum256([]byte(invoice)); l.Invoices["1001"] != got {
		t.Errorf("the ledger has invoice %s, the file is %s", l.Invoices["1001"], got)
	}
	if l.Sessions != 1 {
		t.Errorf("one visitor was given %d cookies", l.Sessions)
	}
	for i, e := range l.Entries {
		if e.Number != i+1 || e.Action != Actions[i] || e.Session != 1 {
			t.Errorf("entry %d is %+v, want action %s of session 1", i+1, e, Actions[i])
		}
	}
	if form := l.Entries[2].What; form["name"] != "Ada Byron" || form["quantity"] != "2" || form["delivery"] != "express" {
		t.Errorf("the form's entry carries %v", form)
	}
}

// I1: a repeat is counted although it is refused.
func TestLedgerCountsRepeats(t *testing.T) {
	v := newVisitor(t)
	v.buy()
	status, body := v.post("/api/order")
	v.want(422, "basket is empty", status, body)
	if n := v.ledger().Counts[ActionConfirm]; n != 2 {
		t.Errorf("two orders were sent and %d counted", n)
	}
	if len(v.ledger().Invoices) != 1 {
		t.Errorf("the repeat made an order: %v", v.ledger().Invoices)
	}
}

// I4: what was typed into the payment frame is nowhere to be found.
func TestCardsAreNotKept(t *testing.T) {
	v := newVisitor(t)
	v.buy()
	l, err := json.Marshal(v.ledger())
	if err != nil {
		t.Fatal(err)
	}
	kept := string(l) + fmt.Sprintf("%+v", v.app.shop.find(v.app.shop.visits[v.cookie()], "1001"))
	for _, secret := range []string{"4242 4242", "42424242", "12/29"} {
		if strings.Contains(kept, secret) {
			t.Errorf("%q was kept: %s", secret, kept)
		}
	}
}

func (v *visitor) cookie() string {
	u, err := url.Parse(v.app.URL())
	if err != nil {
		v.t.Fatal(err)
	}
	return v.http.Jar.Cookies(u)[0].Value
}

func TestShopRefuses(t *testing.T) {
	v := newVisitor(t)
	status, body := v.post("/basket", "product", "brass-pen")
	v.want(422, "start at the list", status, body)
	v.get("/")
	status, body = v.post("/basket", "product", "gold-pen")
	v.want(422, "no such product", status, body)
	status, body = v.post("/api/order")
	v.want(422, "basket is empty", status, body)
	v.post("/basket", "product", "brass-pen")
	for _, c := range []struct{ name, email, quantity, delivery, want string }{
		{"", "a@b", "1", "express", "your name"},
		{"Ada", "ada", "1", "express", "e-mail"},
		{"Ada", "a@b", "0", "express", "between 1 and 20"},
		{"Ada", "a@b", "x", "express", "between 1 and 20"},
		{"Ada", "a@b", "1", "drone", "delivery"},
	} {
		status, body := v.post("/api/details", "name", c.name, "email", c.email, "quantity", c.quantity, "delivery", c.delivery)
		v.want(422, c.want, status, body)
	}
	status, body = v.post("/pay", "for", "nobody", "number", "4242424242424242", "expiry", "12/29", "code", "123")
	v.want(422, "not known", status, body)
	status, body = v.post("/pay", "for", v.payToken(), "number", "4242", "expiry", "12/29", "code", "123")
	v.want(422, "16 digits", status, body)
	status, body = v.post("/api/order")
	v.want(422, "details are missing", status, body)
	if got, _ := v.get("/orders/1001"); got != 404 {
		t.Errorf("an order that does not exist answers %d", got)
	}
}

func TestHostNamesAreChecked(t *testing.T) {
	v := newVisitor(t)
	for host, want := range map[string]int{"evil.example": 421, "localhost:" + v.app.port: 421, "127.0.0.1:" + v.app.port: 200} {
		r, err := http.NewRequest("GET", v.app.URL(), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		if got, body := v.do(r); got != want {
			t.Errorf("host %s: %d %s, want %d", host, got, body, want)
		}
	}
}

func TestServeRefusesOtherAddresses(t *testing.T) {
	for _, listen := range []string{"0.0.0.0:0", "[::]:0", "8080", "localhost:0"} {
		if err := Serve(t.Context(), listen, func(string) { t.Errorf("it serves at %s", listen) }); err == nil {
			t.Errorf("%s was accepted", listen)
		}
	}
}

func TestInvoiceIsDeterministic(t *testing.T) {
	o := &order{Number: 1001, Product: products[0], Details: Details{Name: "Ada (Byron) é", Quantity: 2, Delivery: "express"}, Last4: "4242", Total: 3490}
	a, b := invoicePDF(o), invoicePDF(o)
	if sum256(a) != sum256(b) {
		t.Error("the same order gave two invoices")
	}
	if !strings.Contains(string(a), `(To: Ada \(Byron\) ?) Tj`) || !strings.Contains(string(a), "EUR 34.90") {
		t.Errorf("the invoice reads %s", a)
	}
}
