package daemon

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gonats "github.com/nats-io/nats.go"

	"reins/protocol"
)

func TestXRaw(t *testing.T) {
	w := newWorld(t)
	c := w.client("cli")
	b := w.client("mallory")
	id := c.opened(w.web.URL + "/page/raw")
	_ = b
	conn := func(owner string) *gonats.Conn {
		raw, _ := os.ReadFile(filepath.Join(w.config.StateDir, "credentials", owner+".json"))
		var m map[string]any
		_ = json.Unmarshal(raw, &m)
		user, _ := m["user"].(string)
		if user == "" {
			user, _ = m["owner"].(string)
		}
		pw, _ := m["password"].(string)
		nc, err := gonats.Connect(w.d.URL(), gonats.UserInfo(user, pw), gonats.CustomInboxPrefix("_INBOX_"+owner), gonats.ErrorHandler(func(_ *gonats.Conn, _ *gonats.Subscription, err error) { t.Log("async:", err) }))
		if err != nil {
			t.Fatal(owner, err, string(raw)[:40])
		}
		return nc
	}
	m1 := conn("mallory")
	defer m1.Close()
	ask := func(subj, body string, h gonats.Header) string {
		r, err := m1.RequestMsg(&gonats.Msg{Subject: subj, Data: []byte(body), Header: h}, 1500*time.Millisecond)
		if err != nil {
			return "ERR " + err.Error()
		}
		s := string(r.Data)
		if len(s) > 220 {
			s = s[:220]
		}
		return s
	}
	hello := ask("reins.v1.mallory.hello", `{"version":1,"client":"x"}`, nil)
	t.Log("hello", hello)
	for _, body := range []string{``, `{`, `[]`, `null`, `{"version":99}`, `{"version":"x"}`, strings.Repeat("[", 100000), "\xff\xfe", `{"version":1,"version":1}`} {
		bb := body
		if len(bb) > 30 {
			bb = bb[:30]
		}
		t.Logf("hello %q: %s", bb, ask("reins.v1.mallory.hello", body, nil))
	}
	r, err := m1.Request("reins.v1.mallory.hello", []byte(`{}`), time.Second)
	t.Log(err)
	var hr protocol.HelloReply
	_ = json.Unmarshal(r.Data, &hr)
	t.Log(show(hr))
	exp := func(d time.Duration) string { return fmt.Sprint(time.Now().Add(d).UnixMilli()) }
	good := func() gonats.Header {
		return gonats.Header{"Reins-Version": {"1"}, "Reins-Connection": {hr.Connection}, "Reins-Expires": {exp(20 * time.Second)}}
	}
	do := fmt.Sprintf(`{"operation_id":"m%%d","resource":%q,"generation":1,"method":"click","arguments":{"locator":{"role":"button","name":"Alpha"}}}`, id)
	t.Log("as cli:", ask("reins.v1.cli.do", fmt.Sprintf(do, 1), good()))
	t.Log("wild:", ask("reins.v1.*.do", fmt.Sprintf(do, 1), good()))
	t.Log("cue pub:", m1.Publish("reins.v1.cue."+string(id), []byte(`{}`)), m1.Publish("reins.v1.record."+string(id), []byte(`{}`)), m1.Publish("$SYS.REQ.SERVER.PING", nil), m1.Publish("$JS.API.INFO", nil))
	_, e := m1.SubscribeSync("_INBOX_cli.>")
	t.Log("sub other inbox:", e)
	_, e = m1.SubscribeSync("reins.v1.cli.>")
	t.Log(e)
	_, e = m1.SubscribeSync(">")
	t.Log(e)
	_ = m1.Flush()
	t.Log("no headers:", ask("reins.v1.mallory.do", fmt.Sprintf(do, 2), nil))
	for k, v := range map[string]string{"Reins-Version": "2", "Reins-Connection": "bogus", "Reins-Expires": "-1"} {
		h := good()
		h.Set(k, v)
		t.Log(k, v, ask("reins.v1.mallory.do", fmt.Sprintf(do, 3), h))
	}
	h := good()
	h.Set("Reins-Expires", "99999999999999999999")
	t.Log("exp", ask("reins.v1.mallory.do", fmt.Sprintf(do, 3), h))
	h.Set("Reins-Expires", "9223372036854775807")
	t.Log("exp max", ask("reins.v1.mallory.resources", `{}`, h))
	h = good()
	h.Set("Reins-User-Turn", "a\tb")
	t.Log("turn", ask("reins.v1.mallory.do", fmt.Sprintf(do, 4), h))
	for _, v := range []string{"do", "read", "cancel", "receipt", "claim", "release", "restart", "resources", "history", "demand", "status", "alive", "bye2", "hello"} {
		for _, body := range []string{``, `{`, `null`, `[1]`, `{"resource":null}`, `{"resource":"` + strings.Repeat("x", 600000) + `"}`, "\x00", `{"operation_id":5}`, `{"limit":-5}`, `{"limit":1e99}`, `{"a":` + strings.Repeat(`{"a":`, 20) + `1` + strings.Repeat("}", 21)} {
			got := ask("reins.v1.mallory."+v, body, good())
			if strings.HasPrefix(got, "ERR") && v != "bye2" || strings.Contains(got, "internal") {
				bb := body
				if len(bb) > 30 {
					bb = bb[:30]
				}
				t.Logf("%s %q: %s", v, bb, got)
			}
		}
	}
	// forged reply subjects
	for _, reply := range []string{"_INBOX_cli.x", "reins.v1.cli.do", "reins.v1.mallory.do", "_INBOX_mallory.>", "_INBOX_mallory.*", "_INBOX_malloryx.y", "$JS.API.STREAM.LIST"} {
		sub, _ := m1.SubscribeSync("_INBOX_mallory.>")
		msg := &gonats.Msg{Subject: "reins.v1.mallory.status", Reply: reply, Data: []byte(`{}`), Header: good()}
		t.Log(reply, m1.PublishMsg(msg))
		_ = sub.Unsubscribe()
	}
	// replay of a bye'd connection, another's nonce
	rc, _ := m1.Request("reins.v1.mallory.hello", []byte(`{}`), time.Second)
	_ = rc
	t.Log("bye", ask("reins.v1.mallory.bye", `{}`, good()))
	t.Log("after bye", ask("reins.v1.mallory.do", fmt.Sprintf(do, 5), good()))
	t.Log("status after bye", ask("reins.v1.mallory.status", `{}`, good()))
	// flood: 3000 requests without waiting, and 3000 hellos
	for i := range 3000 {
		_ = m1.PublishMsg(&gonats.Msg{Subject: "reins.v1.mallory.resources", Reply: fmt.Sprintf("_INBOX_mallory.f%d", i), Data: []byte(`{}`), Header: good()})
		_ = m1.PublishMsg(&gonats.Msg{Subject: "reins.v1.mallory.hello", Reply: fmt.Sprintf("_INBOX_mallory.h%d", i), Data: []byte(`{}`)})
	}
	_ = m1.Flush()
	began := time.Now()
	rcpt := c.do(id, protocol.MethodClick, button("Beta"))
	t.Log("beside a flood:", time.Since(began), brief(rcpt))
	t.Log(w.web.did())
	st, err := c.Status(t.Context())
	t.Log(show(st), err)
}
