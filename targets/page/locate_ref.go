package page

import (
	"strconv"
	"strings"

	"reins/protocol"
)

// A ref is "e<generation>.<document>.<node>": the document's id is random, so
// that it names resource and frame as well. The node is in letters only, for a
// number could be what a page keeps secret.
const refLetters = "bcdfghjklmnpqrstvwxz"

func makeRef(g protocol.Generation, document string, node int) protocol.Ref {
	var b []byte
	for n := node; n > 0; n /= len(refLetters) {
		b = append(b, refLetters[n%len(refLetters)])
	}
	return protocol.Ref("e" + strconv.FormatUint(uint64(g), 10) + "." + document + "." + string(b))
}

func parseRef(r protocol.Ref) (g protocol.Generation, document string, node int, ok bool) {
	parts := strings.Split(string(r), ".")
	if len(parts) != 3 || !strings.HasPrefix(parts[0], "e") || parts[1] == "" || parts[2] == "" || len(parts[2]) > 12 {
		return 0, "", 0, false
	}
	gen, err := strconv.ParseUint(parts[0][1:], 10, 64)
	if err != nil {
		return 0, "", 0, false
	}
	for i := len(parts[2]) - 1; i >= 0; i-- {
		d := strings.IndexByte(refLetters, parts[2][i])
		if d < 0 {
			return 0, "", 0, false
		}
		node = node*len(refLetters) + d
	}
	return protocol.Generation(gen), parts[1], node, node > 0
}
