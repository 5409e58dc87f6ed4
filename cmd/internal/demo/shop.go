package demo

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// Product is something the shop sells.
type Product struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Text  string `json:"text"`
	Cents int    `json:"cents"`
	Price string `json:"price"`
}

var products = []Product{
	{ID: "field-notebook", Name: "Field notebook", Text: "96 ruled pages, thread-bound, fits a coat pocket.", Cents: 1250},
	{ID: "brass-pen", Name: "Brass pen", Text: "Turned from one rod. It darkens where it is held.", Cents: 3400},
	{ID: "drawing-pencils", Name: "Drawing pencils", Text: "Five cedar pencils from 2H to 4B in a paper sleeve.", Cents: 980},
	{ID: "linen-folder", Name: "Linen folder", Text: "Holds forty sheets of A4, closed with an elastic.", Cents: 1890},
}

// deliveries are the ways an order is sent and what each costs in cents.
var deliveries = map[string]int{"standard": 390, "express": 990, "pickup": 0}

const (
	maxSessions = 1000
	maxQuantity = 20
	firstOrder  = 1001
)

// Details is the form of the checkout page.
type Details struct {
	Name     string
	Email    string
	Quantity int
	Delivery string
}

// visit is what the shop knows of one visitor.
type visit struct {
	number  int    // ordinal, from 1
	pay     string // what names this visitor to the payment frame
	product *Product
	details *Details
	last4   string
}

type order struct {
	Number  int
	Product Product
	Details Details
	Last4   string
	Total   int
	owner   *visit
	invoice []byte
}

// shop is the state behind the pages. It decides and knows no HTTP.
type shop struct {
	mu     sync.Mutex
	visits map[string]*visit // by cookie; guarded by mu
	pays   map[string]*visit // by payment token; guarded by mu
	orders map[int]*order    // guarded by mu
}

func newShop() *shop {
	return &shop{visits: map[string]*visit{}, pays: map[string]*visit{}, orders: map[int]*order{}}
}

// problem is a refusal with the words that the visitor reads.
type problem string

func (p problem) Error() string { return string(p) }

var errTooManyVisitors = errors.New("the demonstration shop serves 1,000 visitors; start it again")

func findProduct(id string) *Product {
	for i := range products {
		if products[i].ID == id {
			return &products[i]
		}
	}
	return nil
}

func (s *shop) add(v *visit, product string) error {
	p := findProduct(product)
	if p == nil {
		return problem("There is no such product.")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v.product, v.details, v.last4 = p, nil, ""
	return nil
}

func parseDetails(name, email, quantity, delivery string) (Details, error) {
	d := Details{Name: strings.TrimSpace(name), Email: strings.TrimSpace(email), Delivery: delivery}
	if d.Name == "" || len(d.Name) > 200 {
		return d, problem("Please give your name.")
	}
	if at := strings.Index(d.Email, "@"); at < 1 || at == len(d.Email)-1 || len(d.Email) > 200 {
		return d, problem("Please give an e-mail address, such as name@example.org.")
	}
	n, err := strconv.Atoi(strings.TrimSpace(quantity))
	if err != nil || n < 1 || n > maxQuantity {
		return d, problem(fmt.Sprintf("Please order between 1 and %d pieces.", maxQuantity))
	}
	d.Quantity = n
	if _, known := deliveries[delivery]; !known {
		return d, problem("Please choose a delivery.")
	}
	return d, nil
}

func (s *shop) save(v *visit, d Details) (total int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v.product == nil {
		return 0, problem("The basket is empty.")
	}
	v.details = &d
	return sum(*v.product, d), nil
}

func sum(p Product, d Details) int { return p.Cents*d.Quantity + deliveries[d.Delivery] }

// card takes a card of the visitor whose payment token it is and keeps its last four digits only (I4).
func (s *shop) card(token, number, expiry, code string) (last4 string, err error) {
	if last4 = lastFour(number); last4 == "" {
		return "", problem("A card number has 16 digits.")
	}
	if len(expiry) != 5 || expiry[2] != '/' {
		return "", problem("The expiry date reads MM/YY.")
	}
	if len(code) != 3 || strings.Trim(code, "0123456789") != "" {
		return "", problem("The security code has three digits.")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.pays[token]
	if v == nil {
		return "", problem("This payment is not known here.")
	}
	v.last4 = last4
	return last4, nil
}

// lastFour returns the end of a card number, empty if it is none.
func lastFour(number string) string {
	digits := strings.NewReplacer(" ", "", "-", "").Replace(number)
	if len(digits) != 16 || strings.Trim(digits, "0123456789") != "" {
		return ""
	}
	return digits[12:]
}

// place makes an order of the basket and empties it, so that a repeat is refused.
func (s *shop) place(v *visit) (*order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case v.product == nil:
		return nil, problem("The basket is empty.")
	case v.details == nil:
		return nil, problem("Your details are missing.")
	case v.last4 == "":
		return nil, problem("The payment is missing.")
	}
	o := &order{
		Number: firstOrder + len(s.orders), Product: *v.product, Details: *v.details,
		Last4: v.last4, Total: sum(*v.product, *v.details), owner: v,
	}
	o.invoice = invoicePDF(o)
	s.orders[o.Number] = o
	v.product, v.details, v.last4 = nil, nil, ""
	return o, nil
}

// find returns an order of this visitor.
func (s *shop) find(v *visit, number string) *order {
	n, err := strconv.Atoi(number)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.orders[n]; o != nil && o.owner == v {
		return o
	}
	return nil
}

func (s *shop) basket(v *visit) (p *Product, d *Details, last4 string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return v.product, v.details, v.last4
}

// money writes cents as people read them.
func money(cents int) string { return fmt.Sprintf("€%d.%02d", cents/100, cents%100) }
