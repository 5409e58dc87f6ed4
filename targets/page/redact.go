package page

import (
	"encoding/json"
	"net/url"
	"sort"
	"strings"
	"sync"
	"unicode/utf8"

	"reins/protocol"
)

const (
	redacted = "[redacted]"
	// secretPart is how many code points a secret needs to be looked for inside
	// of other text; a shorter one is only found as the whole.
	secretPart = 4
	// secretPrefix is how long a cut beginning of a secret is still one.
	secretPrefix = 32
	// maxSecrets bounds what is remembered of one incarnation; the oldest go.
	maxSecrets = 2000
)

// secrets are the contents of secret fields that this incarnation has seen. They
// live in memory, only to find echoes of them in what goes out.
type secrets struct {
	mu    sync.Mutex
	known map[string]bool
	order []string
	parts []string // what to look for inside of text, the longest first
	whole map[string]bool
	// checked is, for a secret that may still be cut, its first secretPrefix code points.
	cut map[string]string // prefix → the form it is of
}

func newSecrets() *secrets {
	return &secrets{known: map[string]bool{}, whole: map[string]bool{}, cut: map[string]string{}}
}

// add remembers contents of secret fields.
func (s *secrets) add(values ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := false
	for _, v := range values {
		if v == "" || s.known[v] {
			continue
		}
		fresh = true
		s.known[v] = true
		s.order = append(s.order, v)
	}
	if !fresh {
		return
	}
	for len(s.order) > maxSecrets {
		delete(s.known, s.order[0])
		s.order = s.order[1:]
	}
	s.index()
}

// index builds what is looked for. s.mu is held.
func (s *secrets) index() {
	s.parts, s.whole, s.cut = nil, map[string]bool{}, map[string]string{}
	seen := map[string]bool{}
	for _, v := range s.order {
		for _, form := range formsOf(v) {
			if seen[form] {
				continue
			}
			seen[form] = true
			s.whole[form] = true
			n := utf8.RuneCountInString(form)
			if n >= secretPart {
				s.parts = append(s.parts, form)
			}
			if n > secretPrefix {
				s.cut[prefixOf(form, secretPrefix)] = form
			}
		}
	}
	sort.Slice(s.parts, func(i, j int) bool {
		if len(s.parts[i]) != len(s.parts[j]) {
			return len(s.parts[i]) > len(s.parts[j])
		}
		return s.parts[i] < s.parts[j]
	})
}

// formsOf are the ways in which a secret is written elsewhere: as it is, with
// its whitespace squeezed, inside of JSON and inside of a URL.
func formsOf(v string) []string {
	forms := []string{v}
	if t := squeeze(v); t != v && t != "" {
		forms = append(forms, t)
	}
	if b, err := json.Marshal(v); err == nil {
		forms = append(forms, string(b[1:len(b)-1]))
	}
	return append(forms, url.QueryEscape(v), url.PathEscape(v))
}

func prefixOf(s string, n int) string {
	i := 0
	for ; n > 0 && i < len(s); n-- {
		_, w := utf8.DecodeRuneInString(s[i:])
		i += w
	}
	return s[:i]
}

// scrub removes every known secret from text.
func (s *secrets) scrub(text string) string {
	if text == "" {
		return text
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.order) == 0 {
		return text
	}
	if s.whole[text] || s.whole[strings.TrimSpace(text)] {
		return redacted
	}
	for _, p := range s.parts {
		if strings.Contains(text, p) {
			text = strings.ReplaceAll(text, p, redacted)
		}
	}
	for prefix, form := range s.cut {
		text = cutOut(text, prefix, form)
	}
	return text
}

// cutOut removes cut beginnings of form, as far as the text follows it.
func cutOut(text, prefix, form string) string {
	for from := 0; ; {
		i := strings.Index(text[from:], prefix)
		if i < 0 {
			return text
		}
		i += from
		n := len(prefix)
		for i+n < len(text) && n < len(form) && text[i+n] == form[n] {
			n++
		}
		for i+n < len(text) && !utf8.RuneStart(text[i+n]) {
			n++
		}
		text = text[:i] + redacted + text[i+n:]
		from = i + len(redacted)
	}
}

// has reports whether text is or contains a known secret.
func (s *secrets) has(text string) bool { return text != "" && s.scrub(text) != text }

// cleanURL is a URL without the secrets that URLs carry.
func cleanURL(u string) string {
	clean, _ := protocol.SanitiseURL(u)
	return clean
}

// squeeze turns every run of whitespace into one space, as locators compare.
func squeeze(s string) string { return strings.Join(strings.FieldsFunc(s, isSpace), " ") }

// isSpace is what JavaScript's \s matches, so that both sides squeeze alike.
func isSpace(r rune) bool {
	switch r {
	case '\t', '\n', '\v', '\f', '\r', ' ', '\u00a0', '\u1680', '\u2028', '\u2029', '\u202f', '\u205f', '\u3000', '\ufeff':
		return true
	}
	return r >= '\u2000' && r <= '\u200a'
}

// capRunes cuts text to n code points and reports whether it was longer.
func capRunes(text string, n int) (string, bool) {
	if len(text) <= n {
		return text, false
	}
	p := prefixOf(text, n)
	return p, len(p) < len(text)
}
