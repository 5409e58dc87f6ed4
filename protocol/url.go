package protocol

import (
	"net/netip"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// CheckURL says what is wrong with a URL that is to be loaded, or nil: only
// http, https and about:blank, whole, without credentials. The problem never
// repeats the URL, which may hold a secret.
//
// It reads a URL as browsers do and not as RFC 3986 does: what a browser would
// silently mend (backslashes, white space, missing slashes) is refused, since
// there the two readings differ and a check of one says nothing of the other.
func CheckURL(s string) *Problem {
	if len(s) > MaxURLBytes {
		return problem(ReasonURLInvalid, "The URL has %d bytes; at most %d are taken.", len(s), MaxURLBytes)
	}
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }) {
		return problem(ReasonURLInvalid, "The URL has control characters or white space. Write a space as %%20.")
	}
	scheme, rest, ok := cutScheme(s)
	switch {
	case !ok || strings.Contains(scheme, ".") || startsWithPort(rest):
		return problem(ReasonURLInvalid, "%s", ReasonURLInvalid.Sentence())
	case strings.EqualFold(s, "about:blank"):
		return nil
	case scheme != "http" && scheme != "https":
		return problem(ReasonURLNotAllowed, "%s Not %s.", ReasonURLNotAllowed.Sentence(), quote(scheme+":"))
	case !strings.HasPrefix(rest, "//"):
		return problem(ReasonURLInvalid, "%s", ReasonURLInvalid.Sentence())
	}
	authority, path := cutAuthority(rest[2:])
	if strings.Contains(authority, "@") {
		return problem(ReasonURLCredentials, "%s", ReasonURLCredentials.Sentence())
	}
	beforeQuery, _, _ := strings.Cut(path, "?")
	beforeQuery, _, _ = strings.Cut(beforeQuery, "#")
	if strings.Contains(beforeQuery, `\`) {
		return problem(ReasonURLInvalid, "The URL has a backslash. Write / between the parts of a path.")
	}
	if _, _, ok := hostPort(authority); !ok {
		return problem(ReasonURLInvalid, "The URL's host or port is not valid. %s", ReasonURLInvalid.Sentence())
	}
	return nil
}

// Origin returns scheme, host and port of an http or https URL as one lower-case
// word, without the default port; the empty string for what has none.
func Origin(s string) string {
	s = browserTrim(s)
	scheme, rest, ok := cutScheme(s)
	if !ok || scheme != "http" && scheme != "https" {
		return ""
	}
	authority, _ := cutAuthority(strings.TrimLeft(rest, `/\`))
	authority = authority[strings.LastIndex(authority, "@")+1:]
	host, port, ok := hostPort(authority)
	if !ok {
		return ""
	}
	if port == "" || scheme == "http" && port == "80" || scheme == "https" && port == "443" {
		return scheme + "://" + host
	}
	return scheme + "://" + host + ":" + port
}

// cutScheme splits off a scheme, in lower case.
func cutScheme(s string) (scheme, rest string, ok bool) {
	scheme, rest, ok = strings.Cut(s, ":")
	if !ok || scheme == "" {
		return "", "", false
	}
	scheme = strings.ToLower(scheme)
	for i := range len(scheme) {
		c := scheme[i]
		letter := c >= 'a' && c <= 'z'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789+-.", rune(c))) {
			return "", "", false
		}
	}
	return scheme, rest, true
}

// startsWithPort tells host:8080/path, which only looks as if host were a scheme.
func startsWithPort(rest string) bool {
	return rest != "" && rest[0] >= '0' && rest[0] <= '9'
}

// cutAuthority splits what follows the slashes where a browser does.
func cutAuthority(s string) (authority, path string) {
	if i := strings.IndexAny(s, `/\?#`); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

// hostPort splits an authority without credentials. The host is in lower case,
// an IPv6 address in its shortest form.
func hostPort(authority string) (host, port string, ok bool) {
	host = strings.ToLower(authority)
	if strings.HasPrefix(host, "[") {
		inside, after, closed := strings.Cut(host[1:], "]")
		address, err := netip.ParseAddr(inside)
		if !closed || err != nil || !address.Is6() || address.Zone() != "" {
			return "", "", false
		}
		host, port = "["+address.String()+"]", after
		if port != "" && port[0] != ':' {
			return "", "", false
		}
		port = strings.TrimPrefix(port, ":")
	} else {
		host, port, _ = strings.Cut(host, ":")
		if host == "" || strings.Trim(host, ".") == "" || !utf8.ValidString(host) ||
			strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`%<>^|[]"{}`+"`", r) }) {
			return "", "", false
		}
	}
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return "", "", false
		}
		port = strconv.FormatUint(n, 10)
	}
	return host, port, true
}
