package protocol

import (
	"strings"
	"testing"
)

var checkedURLs = []struct {
	url    string
	reason Reason // empty: taken
}{
	{"https://example.org", ""},
	{"HTTP://Example.org:8080/a/b?c=d&e#f", ""},
	{"about:blank", ""},
	{"http://127.0.0.1:1/", ""},
	{"http://[::1]:8080/x", ""},
	{"https://bücher.example/straße?q=ü", ""},
	{"https://xn--bcher-kva.example./", ""},
	{"https://example.org/100%/a@b:c", ""},
	{"https://example.org/?q=a@b", ""},
	{`https://example.org/?q=a\b`, ""},
	{"https://user:pw@example.org/", ReasonURLCredentials},
	{"https://user@example.org/", ReasonURLCredentials},
	{"https://@example.org/", ReasonURLCredentials},
	{"https://user:p%zz@example.org/", ReasonURLCredentials},
	{"file:///etc/passwd", ReasonURLNotAllowed},
	{"FILE:///etc/passwd", ReasonURLNotAllowed},
	{"javascript:alert(1)", ReasonURLNotAllowed},
	{"JavaScript:alert(1)", ReasonURLNotAllowed},
	{"data:text/html,x", ReasonURLNotAllowed},
	{"blob:https://example.org/x", ReasonURLNotAllowed},
	{"chrome://crash", ReasonURLNotAllowed},
	{"view-source:https://example.org", ReasonURLNotAllowed},
	{"about:srcdoc", ReasonURLNotAllowed},
	{"about:blank#x", ReasonURLNotAllowed},
	{"ftp://example.org", ReasonURLNotAllowed},
	{"", ReasonURLInvalid},
	{"example.org", ReasonURLInvalid},
	{"example.org:80/x", ReasonURLInvalid},
	{"localhost:8080", ReasonURLInvalid},
	{"/path", ReasonURLInvalid},
	{"//example.org/", ReasonURLInvalid},
	{"http:example.org", ReasonURLInvalid},
	{"http:/example.org", ReasonURLInvalid},
	{`http:\\example.org`, ReasonURLInvalid},
	{`http://example.org\@evil.example/`, ReasonURLInvalid},
	{"http://", ReasonURLInvalid},
	{"http:///path", ReasonURLInvalid},
	{"http://:80/", ReasonURLInvalid},
	{"http://exa mple.org", ReasonURLInvalid},
	{" http://example.org", ReasonURLInvalid},
	{"http://example.org/a b", ReasonURLInvalid},
	{"http://example.org/\n", ReasonURLInvalid},
	{"java\tscript:alert(1)", ReasonURLInvalid},
	{"http://example.org/\x7f", ReasonURLInvalid},
	{"http://example.org/\u00a0", ReasonURLInvalid},
	{"http://example.org:0/", ReasonURLInvalid},
	{"http://example.org:65536/", ReasonURLInvalid},
	{"http://example.org:x/", ReasonURLInvalid},
	{"http://[::1/", ReasonURLInvalid},
	{"http://[fe80::1%25eth0]/", ReasonURLInvalid},
	{"http://[127.0.0.1]/", ReasonURLInvalid},
	{"http://ho%73t/", ReasonURLInvalid},
	{"http://a<b/", ReasonURLInvalid},
	{"http://\xff/", ReasonURLInvalid},
	{"http://example.org/" + strings.Repeat("x", MaxURLBytes), ReasonURLInvalid},
}

func TestCheckURL(t *testing.T) {
	for _, c := range checkedURLs {
		p := CheckURL(c.url)
		switch {
		case p == nil && c.reason != "":
			t.Errorf("%q: taken, want %s", c.url, c.reason)
		case p != nil && p.Reason != c.reason:
			t.Errorf("%q: got %v, want %q", c.url, p, c.reason)
		}
	}
}

// TestCheckURLKeepsSecrets holds that a refusal does not repeat the URL.
func TestCheckURLKeepsSecrets(t *testing.T) {
	for _, url := range []string{"https://user:geheim@example.org/", "javascript:geheim", "https://h:geheim/", "geheim"} {
		if p := CheckURL(url); p == nil || strings.Contains(p.Message, "geheim") {
			t.Errorf("%q: got %v", url, p)
		}
	}
}

func TestOrigin(t *testing.T) {
	for url, want := range map[string]string{
		"https://Example.org/a?b#c":         "https://example.org",
		"https://example.org:443":           "https://example.org",
		"http://example.org:080/":           "http://example.org",
		"http://example.org:443/":           "http://example.org:443",
		"https://user:pw@example.org:8443/": "https://example.org:8443",
		"http://[0:0:0:0:0:0:0:1]:8080/x":   "http://[::1]:8080",
		`https:\\example.org\x`:             "https://example.org",
		"about:blank":                       "",
		"data:text/html,https://x":          "",
		"nonsense":                          "",
		"":                                  "",
	} {
		if got := Origin(url); got != want {
			t.Errorf("%q: got %q, want %q", url, got, want)
		}
	}
}

// FuzzCheckURL holds that what is taken has an origin, carries no credentials
// and needs no mending, and that a refusal has its own reason.
func FuzzCheckURL(f *testing.F) {
	for _, c := range checkedURLs {
		f.Add(c.url)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p := CheckURL(s)
		if p != nil {
			if p.Reason != ReasonURLInvalid && p.Reason != ReasonURLCredentials && p.Reason != ReasonURLNotAllowed || p.Message == "" {
				t.Fatalf("%q: %v", s, p)
			}
			return
		}
		if strings.EqualFold(s, "about:blank") {
			return
		}
		origin := Origin(s)
		if origin == "" || CheckURL(origin) != nil || Origin(origin) != origin {
			t.Fatalf("%q is taken with the origin %q", s, origin)
		}
		if clean, _ := SanitiseURL(s); CheckURL(clean) != nil || Origin(clean) != origin {
			t.Fatalf("%q is taken, but sanitised it is %q", s, clean)
		}
	})
}
