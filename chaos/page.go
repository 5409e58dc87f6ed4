package chaos

import (
	"html/template"
	"net/http"

	"reins/protocol"
)

// report is how a page writes into the ledger: by a request that holds up its
// handler, so that what the handler does is in the ledger when it returns.
const report = `{{define "report"}}<script>
const page = {{.Name}}, load = {{.Load}};
function report(op, part, trusted) {
	const x = new XMLHttpRequest();
	x.open('POST', '/did?' + new URLSearchParams({op, part, page, load, trusted}), false);
	try { x.send() } catch {}
}
</script>{{end}}`

// sheetPage has a button for each click, named by the operation, one for each
// part of a batch, and a field for each operation that types.
const sheetPage = `<!doctype html><html lang=en><title>{{.Name}}</title><link rel=icon href="data:,">
<h1>{{.Name}}</h1>{{template "report" .}}
{{range .Fields}}<p><label>{{.Operation}} <input data-op="{{.Operation}}" autocomplete=off></label>
{{end}}{{range .Buttons}}<p><button data-op="{{.Operation}}" data-part="{{.Part}}">{{.Label}}</button>
{{end}}<script>
for (const b of document.querySelectorAll('button')) b.onclick = e => report(b.dataset.op, b.dataset.part, e.isTrusted);
for (const i of document.querySelectorAll('input')) {
	let n = 0;
	i.oninput = e => report(i.dataset.op, ++n + e.data, e.isTrusted);
}
</script>`

type button struct{ Operation, Part, Label string }

var templates = func() *template.Template {
	t := template.Must(template.New("page").Parse(sheetPage))
	template.Must(t.Parse(report))
	template.Must(t.New("busy").Parse(busyPage))
	template.Must(t.New("inner").Parse(innerPage))
	template.Must(t.New("gesture").Parse(gesture))
	return t
}()

// Label is the name of the button that stands for a part of an operation.
func Label(operation protocol.OperationID, part string) string {
	if part == "" {
		return string(operation)
	}
	return string(operation) + "." + part
}

// render writes a page.
func render(w http.ResponseWriter, kind, name, port string, load int, s *sheet) error {
	data := struct {
		Name, Port      string
		Hide            string
		Load            int
		Fields, Buttons []button
		Busy            *Busy
	}{Name: name, Port: port, Load: load, Busy: s.busy}
	if s.hide {
		data.Hide = name + "-hide"
	}
	for _, c := range s.calls {
		switch c.Method {
		case protocol.MethodType:
			data.Fields = append(data.Fields, button{Operation: string(c.Operation)})
		case protocol.MethodClick, protocol.MethodBatch:
			for _, p := range c.Parts {
				data.Buttons = append(data.Buttons, button{Operation: string(c.Operation), Part: p, Label: Label(c.Operation, p)})
			}
		}
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	what := "page"
	switch {
	case kind == "inner":
		what = "inner"
	case s.busy != nil:
		what = "busy"
	}
	return templates.ExecuteTemplate(w, what, data)
}
