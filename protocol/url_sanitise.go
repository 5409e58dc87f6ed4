package protocol

import (
	"regexp"
	"strconv"
	"strings"
)

// maxNested is how many URLs inside one another are looked into.
const maxNested = 4

// maxLooked is how many bytes a URL may have to be looked through; of a longer
// one only the origin is left.
const maxLooked = 8 * MaxURLBytes

// SanitiseURL removes what may be secret from a URL before it is stored, shown
// or logged: credentials, values of query parameters whose name says secret or
// whose value looks like a key, the same in URLs that are values, and such
// fragments. Of schemes that carry their content (data:, blob:, …) only the
// scheme is left. redacted says that something was removed. Sanitising twice
// changes nothing more, and the result has at most [MaxURLBytes] bytes.
func SanitiseURL(s string) (clean string, redacted bool) {
	s = browserTrim(s)
	scheme, _, ok := cutScheme(s)
	switch {
	case len(s) > maxLooked: // a page may make it of megabytes, and each look costs
		clean, redacted = Origin(s), true
	case s == "" || s == "about:blank" || s == "about:srcdoc":
		return s, false
	case !ok || scheme == "about" || scheme == "http" || scheme == "https":
		clean, redacted = sanitiseReference(s, maxNested)
	default:
		return scheme + ":", s != scheme+":"
	}
	if len(clean) > MaxURLBytes {
		clean, redacted = Origin(clean), true
		if len(clean) > MaxURLBytes {
			clean = ""
		}
	}
	return browserTrim(clean), redacted
}

// browserTrim removes what a browser drops before it reads a URL.
func browserTrim(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD")))
}

// sanitiseReference does a whole URL or one that leaves out scheme or host.
func sanitiseReference(s string, nested int) (string, bool) {
	scheme, rest, ok := cutScheme(s)
	if ok && (scheme == "http" || scheme == "https") {
		return sanitiseWeb(scheme, rest, nested)
	}
	if strings.HasPrefix(s, "//") {
		clean, redacted := sanitiseWeb("http", s, nested)
		return strings.TrimPrefix(clean, "http:"), redacted
	}
	return sanitisePath(s, nested)
}

func sanitiseWeb(scheme, rest string, nested int) (string, bool) {
	authority, path := cutAuthority(strings.TrimLeft(rest, `/\`))
	at := strings.LastIndex(authority, "@")
	if authority[at+1:] == "" { // no host, so no URL: what is a path in it is a guess
		return scheme + "://", authority+path != ""
	}
	path, redacted := sanitisePath(path, nested)
	return scheme + "://" + authority[at+1:] + path, redacted || at >= 0
}

// sanitisePath does path, query and fragment.
func sanitisePath(s string, nested int) (string, bool) {
	s, fragment, hasFragment := strings.Cut(s, "#")
	path, query, hasQuery := strings.Cut(s, "?")
	path, redacted := sanitiseMatrix(path, nested)
	if hasQuery {
		clean, r := sanitisePairs(query, nested)
		path, redacted = path+"?"+clean, redacted || r
	}
	if hasFragment {
		clean, r := sanitiseFragment(fragment, nested)
		redacted = redacted || r
		if clean != "" || !r {
			path += "#" + clean
		}
	}
	return path, redacted
}

// sanitiseMatrix does parameters inside a path, such as /cart;jsessionid=….
func sanitiseMatrix(path string, nested int) (string, bool) {
	first, parameters, ok := strings.Cut(path, ";")
	if !ok {
		return path, false
	}
	segments := strings.Split(parameters, "/")
	redacted := false
	for i, segment := range segments {
		if !strings.Contains(segment, "=") {
			continue
		}
		clean, r := sanitisePairs(segment, nested)
		segments[i], redacted = clean, redacted || r
	}
	return first + ";" + strings.Join(segments, "/"), redacted
}

// sanitiseFragment removes a fragment of pairs as soon as one of them is secret;
// of a route with a query (#/inbox?token=…) the route stays.
func sanitiseFragment(fragment string, nested int) (string, bool) {
	if route, query, ok := strings.Cut(fragment, "?"); ok {
		clean, redacted := sanitisePairs(query, nested)
		if _, secretRoute := sanitisePairs(route, nested); secretRoute {
			return "", true
		}
		return route + "?" + clean, redacted
	}
	if _, redacted := sanitisePairs(strings.TrimLeft(fragment, "!/"), nested); redacted {
		return "", true
	}
	return fragment, false
}

// sanitisePairs empties the secret values of key=value pairs.
func sanitisePairs(query string, nested int) (string, bool) {
	var b strings.Builder
	redacted := false
	for len(query) > 0 {
		end := strings.IndexAny(query, "&;")
		pair, separator := query, ""
		if end >= 0 {
			pair, separator = query[:end], query[end:end+1]
		}
		query = query[len(pair)+len(separator):]
		clean, r := sanitisePair(pair, nested)
		redacted = redacted || r
		b.WriteString(clean)
		b.WriteString(separator)
	}
	return b.String(), redacted
}

func sanitisePair(pair string, nested int) (string, bool) {
	key, value, ok := strings.Cut(pair, "=")
	if !ok {
		if looksSecret(decoded(pair)) {
			return "", true
		}
		return pair, false
	}
	if value == "" {
		return pair, false
	}
	text := decoded(value)
	if secretName(decoded(key)) || looksSecret(text) || looksSecret(strings.ReplaceAll(text, " ", "+")) {
		return key + "=", true
	}
	if !strings.ContainsAny(text, "=?#@") {
		return pair, false
	}
	if nested == 0 {
		return key + "=", true
	}
	if hasSecret(text, nested-1) {
		return key + "=", true
	}
	return pair, false
}

// hasSecret tells whether a value is a URL or a query that has a secret of its
// own. Such a value goes as a whole: put together again it could be read otherwise.
func hasSecret(text string, nested int) bool {
	sanitise := sanitisePairs
	if strings.ContainsAny(text, "?#/") {
		sanitise = sanitiseReference
	}
	_, redacted := sanitise(text, nested)
	return redacted
}

// decoded undoes percent-encoding as far as it is valid, as servers do.
func decoded(s string) string {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '+' {
			c = ' '
		}
		if c == '%' && i+2 < len(s) {
			if b, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				c = byte(b)
				i += 2
			}
		}
		out = append(out, c)
	}
	return string(out)
}

var (
	secretNames = wordSet(`code key auth sig sid otp totp pin pwd pass jwt session sessionid sessid jsessionid phpsessid
		aspsessionid authorization bearer oauth saml samlresponse samlrequest assertion ticket nonce accesskey privatekey
		authkey apikey xapikey licensekey sessionkey hmac mac sas cookie`)
	secretParts = []string{"token", "secret", "passw", "passphrase", "passcode", "credential", "signature", "apikey",
		"accesskey", "privatekey", "authcode", "csrf", "xsrf", "verifier"}
	uuid    = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	hex     = regexp.MustCompile(`^[0-9a-fA-F]{32,}$`)
	base64  = regexp.MustCompile(`^[A-Za-z0-9+/_\-.~=]{32,}$`)
	jsonWeb = regexp.MustCompile(`^eyJ[A-Za-z0-9_\-]+\.[A-Za-z0-9_\-]*(\.[A-Za-z0-9_\-]*)?$`)
)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}

// secretName tells whether a parameter's name says that its value is secret.
func secretName(name string) bool {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(name))
	if secretNames[name] {
		return true
	}
	for _, part := range secretParts {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// looksSecret tells keys and tokens by their look: long, and of the kind that
// hex or base64 makes. A UUID with its dashes is taken for a name of a thing.
func looksSecret(value string) bool {
	switch {
	case uuid.MatchString(value):
		return false
	case jsonWeb.MatchString(value), hex.MatchString(value):
		return true
	}
	return base64.MatchString(value) && isMixed(value)
}

// isMixed tells random characters from words: kinds of characters change all
// the time in random text, and seldom in words, dates and file names.
func isMixed(value string) bool {
	changes, letters := 0, 0
	var last byte
	for i := range len(value) {
		kind := kindOf(value[i])
		if kind == 0 {
			continue
		}
		letters++
		if last != 0 && kind != last {
			changes++
		}
		last = kind
	}
	return letters >= 24 && changes*5 >= letters
}

func kindOf(c byte) byte {
	switch {
	case c >= 'a' && c <= 'z':
		return 'a'
	case c >= 'A' && c <= 'Z':
		return 'A'
	case c >= '0' && c <= '9':
		return '0'
	}
	return 0
}
