package page

import "unicode/utf8"

// A page may make these as long as it likes, and they are in every record,
// receipt and observation of it.
const (
	maxTitle  = 1024 // bytes of a title
	maxDialog = 8192 // bytes of a dialog's text, and of what a prompt proposes
)

// clip cuts what a page says of itself, after its secrets were taken out.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	const cut = "…"
	n := most - len(cut)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + cut
}
