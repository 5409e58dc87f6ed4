package protocol

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

const (
	hexKey    = "9f86d081884c7d659a2feaa0c55ad015"
	base64Key = "q3Jz8Kx0vB2mN7wT4yR1cD6fG9hL5pS0aE3uI8oXQ-_"
	webToken  = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.x-Y_z"
)

var sanitised = []struct{ url, want string }{
	{"https://example.org/a?b=c&d#e", "https://example.org/a?b=c&d#e"},
	{"https://user:pw@example.org/a", "https://example.org/a"},
	{"https://a@b@example.org/", "https://example.org/"},
	{`https:\\user:pw@example.org/`, "https://example.org/"},
	{"https:user:pw@example.org/", "https://example.org/"},
	{"//user:pw@example.org/", "//example.org/"},
	{"https://example.org/?token=abc", "https://example.org/?token="},
	{"https://example.org/?Access_Token=abc&x=1", "https://example.org/?Access_Token=&x=1"},
	{"https://example.org/?x=1;password=abc", "https://example.org/?x=1;password="},
	{"https://example.org/?user%5Bpassw%6Frd%5D=abc", "https://example.org/?user%5Bpassw%6Frd%5D="},
	{"https://example.org/?X-Amz-Signature=abc&X-Amz-Date=20240101", "https://example.org/?X-Amz-Signature=&X-Amz-Date=20240101"},
	{"https://example.org/cb?code=4/abc&state=1", "https://example.org/cb?code=&state=1"},
	{"https://example.org/?postcode=12345&author=me&keyword=x&sort_key=a&design=1", "https://example.org/?postcode=12345&author=me&keyword=x&sort_key=a&design=1"},
	{"https://example.org/?v=" + hexKey, "https://example.org/?v="},
	{"https://example.org/?v=" + base64Key, "https://example.org/?v="},
	{"https://example.org/?v=q3Jz8Kx0vB2mN7wT4yR1+D6fG9hL5pS0/E3uI8oXQ%3D%3D", "https://example.org/?v="},
	{"https://example.org/?v=" + webToken, "https://example.org/?v="},
	{"https://example.org/?" + hexKey, "https://example.org/?"},
	{"https://example.org/?id=123e4567-e89b-12d3-a456-426614174000", "https://example.org/?id=123e4567-e89b-12d3-a456-426614174000"},
	{"https://example.org/?slug=how-to-configure-a-server-in-2024-and-after", "https://example.org/?slug=how-to-configure-a-server-in-2024-and-after"},
	{"https://example.org/?q=a+few+words+and+no+secret+in+them+at+all", "https://example.org/?q=a+few+words+and+no+secret+in+them+at+all"},
	{"https://example.org/#access_token=abc&token_type=bearer", "https://example.org/"},
	{"https://example.org/#!/inbox?token=abc&page=2", "https://example.org/#!/inbox?token=&page=2"},
	{"https://example.org/#section-2", "https://example.org/#section-2"},
	{"https://example.org/#a=b", "https://example.org/#a=b"},
	{"https://example.org/#" + hexKey, "https://example.org/"},
	{"https://example.org/shop;jsessionid=ABC123/cart?x=1", "https://example.org/shop;jsessionid=/cart?x=1"},
	{"https://example.org/?next=https%3A%2F%2Fu%3Ap%40b.example%2Fcb%3Ftoken%3Dabc%26x%3D1", "https://example.org/?next="},
	{"https://example.org/?next=%2Fcb%3Fcode%3Dabc", "https://example.org/?next="},
	{"https://example.org/?next=%2Fcb%3Fpage%3D2&to%6Ben%zz=abc", "https://example.org/?next=%2Fcb%3Fpage%3D2&to%6Ben%zz="},
	{"https://@/a?token=abc", "https://"},
	{"https://example.org/?token=", "https://example.org/?token="},
	{"data:text/html,secret", "data:"},
	{"blob:https://example.org/" + hexKey, "blob:"},
	{"javascript:secret", "javascript:"},
	{"about:blank", "about:blank"},
	{"about:blank#token=abc", "about:blank"},
	{"", ""},
	{" https://exa\tmple.org/\n", "https://example.org/"},
	{"https://example.org/" + strings.Repeat("x", MaxURLBytes), "https://example.org"},
}

func TestSanitiseURL(t *testing.T) {
	for _, c := range sanitised {
		got, redacted := SanitiseURL(c.url)
		if got != c.want {
			t.Errorf("%q: got %q, want %q", c.url, got, c.want)
		}
		if trimmed := browserTrim(c.url); redacted != (trimmed != c.want) {
			t.Errorf("%q: redacted is %v", c.url, redacted)
		}
	}
}

// TestSanitiseURLRemovesSecrets plants a secret at each place where one may be
// and looks for it in what is left.
func TestSanitiseURLRemovesSecrets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[a-zA-Z0-9]{8}geheim[a-zA-Z0-9]{8}`).Draw(t, "secret")
		name := rapid.SampledFrom([]string{"token", "access_token", "code", "password", "passwd", "pwd", "secret", "client_secret",
			"key", "api_key", "auth", "signature", "sig", "session", "sid", "otp", "jwt", "id_token", "X-Api-Key"}).Draw(t, "name")
		other := rapid.StringMatching(`[a-z]{1,5}=[a-z0-9%+]{0,5}`).Draw(t, "other")
		pair := name + "=" + secret
		s := rapid.SampledFrom([]string{
			"https://example.org/?" + pair, "https://example.org/?" + other + "&" + pair, "https://example.org/a#" + pair,
			"https://example.org/a#/r?" + other + "&" + pair, "https://" + name + ":" + secret + "@example.org/?" + other,
			"https://example.org/p;" + pair + "?" + other, "https://example.org/?u=" + url.QueryEscape("https://b.example/?"+pair),
			"https://example.org/?u=" + url.QueryEscape("https://x:"+secret+"@b.example/"),
			"https://example.org/?u=" + url.QueryEscape("https://b.example/?v="+url.QueryEscape("/c#"+pair)),
		}).Draw(t, "url")
		clean, redacted := SanitiseURL(s)
		if !redacted || strings.Contains(clean, "geheim") {
			t.Fatalf("%q: got %q, %v", s, clean, redacted)
		}
	})
}

// TestLooksSecret holds that random keys are known by their look.
func TestLooksSecret(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringMatching(`[0-9a-f]{32,64}`).Draw(t, "hex")
		if !looksSecret(key) {
			t.Fatalf("%q is not taken for a secret", key)
		}
	})
	for _, key := range []string{base64Key, webToken, "AKIAIOSFODNN7EXAMPLEq1W2e3R4t5Y6u7I8", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"} {
		if !looksSecret(key) {
			t.Errorf("%q is not taken for a secret", key)
		}
	}
}

// FuzzSanitiseURL holds that the result is bounded text, that a second pass
// changes nothing, and that credentials are gone.
func FuzzSanitiseURL(f *testing.F) {
	for _, c := range sanitised {
		f.Add(c.url)
	}
	f.Fuzz(func(t *testing.T, s string) {
		clean, redacted := SanitiseURL(s)
		if len(clean) > MaxURLBytes || !utf8.ValidString(clean) || strings.ContainsAny(clean, "\x00\n") {
			t.Fatalf("%q: got %q", s, clean)
		}
		if again, more := SanitiseURL(clean); again != clean || more {
			t.Fatalf("%q: got %q (%v), then %q (%v)", s, clean, redacted, again, more)
		}
		if scheme, rest, ok := cutScheme(clean); ok && strings.HasPrefix(scheme, "http") {
			if authority, _ := cutAuthority(strings.TrimLeft(rest, `/\`)); strings.Contains(authority, "@") {
				t.Fatalf("%q: credentials are left in %q", s, clean)
			}
		}
	})
}
