package demo

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

func (a *App) index(w http.ResponseWriter, r *http.Request) {
	if _, err := a.visitor(w, r); err != nil {
		refuse(w, err)
		return
	}
	a.book.page("/")
	render(w, "index.html", nil)
}

// list answers late, as a busy shop would.
func (a *App) list(w http.ResponseWriter, r *http.Request) {
	a.book.enter(ActionList, number(a.known(r)), map[string]string{"products": strconv.Itoa(len(products))})
	late := time.NewTimer(ListDelay)
	defer late.Stop()
	select {
	case <-late.C:
	case <-r.Context().Done():
		return
	}
	shown := make([]Product, len(products))
	for i, p := range products {
		p.Price = money(p.Cents)
		shown[i] = p
	}
	answer(w, http.StatusOK, shown)
}

func (a *App) add(w http.ResponseWriter, r *http.Request) {
	v, product := a.known(r), r.PostFormValue("product")
	a.book.enter(ActionAdd, number(v), map[string]string{"product": short(product)})
	if v == nil {
		refuse(w, problem("Please start at the list of products."))
		return
	}
	if err := a.shop.add(v, product); err != nil {
		refuse(w, err)
		return
	}
	http.Redirect(w, r, "/checkout", http.StatusSeeOther)
}

// checkoutPage is what the checkout page shows.
type checkoutPage struct {
	Product *Product
	Details *Details
	Last4   string
	Total   int
	Pay     string
	PayFrom string
}

func (a *App) checkout(w http.ResponseWriter, r *http.Request) {
	v, err := a.visitor(w, r)
	if err != nil {
		refuse(w, err)
		return
	}
	a.book.page("/checkout")
	p, d, last4 := a.shop.basket(v)
	page := checkoutPage{Product: p, Details: d, Last4: last4, PayFrom: a.payOrigin(), Pay: a.payOrigin() + "/pay?for=" + v.pay}
	if p != nil && d != nil {
		page.Total = sum(*p, *d)
	}
	render(w, "checkout.html", page)
}

func (a *App) details(w http.ResponseWriter, r *http.Request) {
	v := a.known(r)
	name, email := r.PostFormValue("name"), r.PostFormValue("email")
	quantity, delivery := r.PostFormValue("quantity"), r.PostFormValue("delivery")
	a.book.enter(ActionForm, number(v), map[string]string{
		"name": short(name), "email": short(email), "quantity": short(quantity), "delivery": short(delivery),
	})
	if v == nil {
		refuse(w, problem("Please start at the list of products."))
		return
	}
	d, err := parseDetails(name, email, quantity, delivery)
	if err != nil {
		refuse(w, err)
		return
	}
	total, err := a.shop.save(v, d)
	if err != nil {
		refuse(w, err)
		return
	}
	answer(w, http.StatusOK, map[string]string{"total": money(total)})
}

func (a *App) payPage(w http.ResponseWriter, r *http.Request) {
	a.book.page("/pay")
	render(w, "pay.html", map[string]string{"For": r.URL.Query().Get("for"), "Shop": "http://127.0.0.1:" + a.port})
}

func (a *App) pay(w http.ResponseWriter, r *http.Request) {
	token := r.PostFormValue("for")
	a.shop.mu.Lock()
	v := a.shop.pays[token]
	a.shop.mu.Unlock()
	card := r.PostFormValue("number")
	a.book.enter(ActionPayment, number(v), map[string]string{"card": "ends in " + lastFour(card)})
	last4, err := a.shop.card(token, card, r.PostFormValue("expiry"), r.PostFormValue("code"))
	if err != nil {
		refuse(w, err)
		return
	}
	answer(w, http.StatusOK, map[string]string{"last4": last4})
}

func (a *App) order(w http.ResponseWriter, r *http.Request) {
	v := a.known(r)
	what := map[string]string{}
	if v == nil {
		a.book.enter(ActionConfirm, 0, what)
		refuse(w, problem("Please start at the list of products."))
		return
	}
	p, d, last4 := a.shop.basket(v)
	if p != nil && d != nil {
		what = map[string]string{"product": p.ID, "quantity": strconv.Itoa(d.Quantity), "total": money(sum(*p, *d)), "card": "ends in " + last4}
	}
	a.book.enter(ActionConfirm, v.number, what)
	o, err := a.shop.place(v)
	if err != nil {
		refuse(w, err)
		return
	}
	a.book.invoice(strconv.Itoa(o.Number), sum256(o.invoice))
	answer(w, http.StatusOK, map[string]string{"url": fmt.Sprintf("/orders/%d", o.Number)})
}

func (a *App) orderPage(w http.ResponseWriter, r *http.Request) {
	o := a.shop.find(a.known(r), r.PathValue("number"))
	if o == nil {
		http.NotFound(w, r)
		return
	}
	a.book.page("/orders")
	render(w, "order.html", o)
}

func (a *App) invoice(w http.ResponseWriter, r *http.Request) {
	v := a.known(r)
	a.book.enter(ActionInvoice, number(v), map[string]string{"order": short(r.PathValue("number"))})
	o := a.shop.find(v, r.PathValue("number"))
	if o == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/pdf")
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="invoice-%d.pdf"`, o.Number))
	w.Header().Set("Content-Length", strconv.Itoa(len(o.invoice)))
	w.Write(o.invoice) // the visitor may be gone: the ledger has the request
}

// short bounds a value for the ledger.
func short(s string) string {
	if r := []rune(s); len(r) > 200 {
		return string(r[:200]) + "…"
	}
	return s
}
