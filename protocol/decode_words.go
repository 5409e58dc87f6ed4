package protocol

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// quoteBytes is how much of a caller's own word a message repeats at most.
const quoteBytes = 64

// quote repeats a caller's word in a message, cut and escaped, so that a message
// stays one short line whatever was sent.
func quote(s string) string {
	if len(s) > quoteBytes {
		cut := quoteBytes
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		return strconv.Quote(s[:cut]) + "…"
	}
	return strconv.Quote(s)
}

// near lists the words of all that s may have been meant for.
func near(s string, all []string) []string {
	s = strings.ToLower(s)
	if s == "" || len(s) > quoteBytes {
		return nil
	}
	var likely []string
	for _, w := range all {
		far := 1 + len(w)/4
		if distance(s, w) <= far || len(s) > 2 && (strings.HasPrefix(w, s) || strings.HasPrefix(s, w)) {
			likely = append(likely, w)
		}
	}
	return likely
}

// distance is how many bytes have to be added, dropped or changed to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		previous := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := previous
			if a[i] != b[j] {
				change++
			}
			previous = row[j+1]
			row[j+1] = min(change, previous+1, row[j]+1)
		}
	}
	return row[len(b)]
}
