package demo

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net"
	"net/http"
	"strconv"
	"time"
)

//go:embed web
var web embed.FS

var pages = template.Must(template.New("").Funcs(template.FuncMap{"money": money}).ParseFS(web, "web/*.html"))

// ListDelay is how late the list of products arrives behind its page.
const ListDelay = 1200 * time.Millisecond

// maxBody bounds what a visitor may send.
const maxBody = 16 << 10

// App is the shop as an HTTP handler. It serves two sites from one listener:
// the shop under 127.0.0.1 and the payment frame under localhost, which a
// browser keeps in processes apart.
type App struct {
	shop *shop
	book *book
	mux  *http.ServeMux
	port string
}

// NewApp makes a shop that is reached at a port of the loopback address.
func NewApp(port int) *App {
	a := &App{shop: newShop(), book: newBook(time.Now), mux: http.NewServeMux(), port: strconv.Itoa(port)}
	static, err := fs.Sub(web, "web/static")
	if err != nil {
		panic(err) // the files are embedded: only a broken build gets here
	}
	a.mux.Handle("GET /static/", http.StripPrefix("/static/", http.FileServerFS(static)))
	a.mux.HandleFunc("GET /{$}", a.index)
	a.mux.HandleFunc("GET /api/products", a.list)
	a.mux.HandleFunc("POST /basket", a.add)
	a.mux.HandleFunc("GET /checkout", a.checkout)
	a.mux.HandleFunc("POST /api/details", a.details)
	a.mux.HandleFunc("GET /pay", a.payPage)
	a.mux.HandleFunc("POST /pay", a.pay)
	a.mux.HandleFunc("POST /api/order", a.order)
	a.mux.HandleFunc("GET /orders/{number}", a.orderPage)
	a.mux.HandleFunc("GET /orders/{number}/invoice", a.invoice)
	a.mux.HandleFunc("GET /ledger", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, a.book.read()) })
	return a
}

// URL is the address of the shop's first page.
func (a *App) URL() string { return "http://127.0.0.1:" + a.port + "/" }

func (a *App) payOrigin() string { return "http://localhost:" + a.port }

// ServeHTTP refuses every host name but the two sites, so that no page of the
// web can reach the shop by a name of its own.
func (a *App) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	isPay := r.URL.Path == "/pay" || len(r.URL.Path) > 8 && r.URL.Path[:8] == "/static/"
	switch r.Host {
	case "127.0.0.1:" + a.port:
	case "localhost:" + a.port:
		if !isPay {
			http.Error(w, "only the payment frame is at this name", http.StatusMisdirectedRequest)
			return
		}
	default:
		http.Error(w, "unknown host name", http.StatusMisdirectedRequest)
		return
	}
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'self'; frame-src "+a.payOrigin()+"; frame-ancestors http://127.0.0.1:"+a.port)
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	a.mux.ServeHTTP(w, r)
}

// Serve runs the shop at a loopback address until ctx ends. ready is called once
// with the address of the first page.
func Serve(ctx context.Context, listen string, ready func(url string)) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("%q is no address: give host and port, as 127.0.0.1:8080 (port 0 takes a free one): %w", listen, err)
	}
	if host != "127.0.0.1" {
		return fmt.Errorf("the shop listens on 127.0.0.1 only, not on %q: it knows no passwords", host)
	}
	l, err := net.Listen("tcp4", listen)
	if err != nil {
		return fmt.Errorf("cannot listen at %s; choose another port with --listen: %w", listen, err)
	}
	app := NewApp(l.Addr().(*net.TCPAddr).Port)
	srv := &http.Server{Handler: app, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	ready(app.URL())
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// visitor returns who asks, and gives a cookie to one who has none.
func (a *App) visitor(w http.ResponseWriter, r *http.Request) (*visit, error) {
	if v := a.known(r); v != nil {
		return v, nil
	}
	a.shop.mu.Lock()
	defer a.shop.mu.Unlock()
	if len(a.shop.visits) == maxSessions {
		return nil, errTooManyVisitors
	}
	v := &visit{number: a.book.session(), pay: rand.Text()}
	id := rand.Text()
	a.shop.visits[id], a.shop.pays[v.pay] = v, v
	http.SetCookie(w, &http.Cookie{Name: "visit", Value: id, Path: "/", MaxAge: 86400, HttpOnly: true, SameSite: http.SameSiteLaxMode})
	return v, nil
}

// known returns the visitor of a request's cookie, nil for none.
func (a *App) known(r *http.Request) *visit {
	c, err := r.Cookie("visit")
	if err != nil {
		return nil
	}
	a.shop.mu.Lock()
	defer a.shop.mu.Unlock()
	return a.shop.visits[c.Value]
}

func number(v *visit) int {
	if v == nil {
		return 0
	}
	return v.number
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v) // the visitor may be gone: nobody is left to tell
}

// refuse answers an action that the shop does not carry out.
func refuse(w http.ResponseWriter, err error) {
	var p problem
	status := http.StatusInternalServerError
	if errors.As(err, &p) {
		status = http.StatusUnprocessableEntity
	}
	answer(w, status, map[string]string{"error": err.Error()})
}

func render(w http.ResponseWriter, name string, data any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := pages.ExecuteTemplate(w, name, data); err != nil {
		panic(http.ErrAbortHandler) // the page is cut short rather than shown half
	}
}

func sum256(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}
