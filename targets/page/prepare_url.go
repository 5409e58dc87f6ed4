package page

import (
	"reins/protocol"
	"reins/targets"
)

func prepareNavigate(c targets.Call, pre *prepared) *protocol.Problem {
	var a protocol.NavigateArguments // open's URL has the same name
	if pr := decode(c, &a); pr != nil {
		return pr
	}
	if a.URL == "" && c.Method == protocol.MethodOpen {
		a.URL = "about:blank"
	}
	pre.url = a.URL
	return protocol.CheckURL(a.URL)
}
