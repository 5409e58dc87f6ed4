package demo

import (
	"bytes"
	"fmt"
	"strings"
)

// invoicePDF writes the invoice of an order as a PDF of one page. The same order
// gives the same bytes: no date and no random identifier is in it.
func invoicePDF(o *order) []byte {
	lines := []string{
		"Fern & Quill", "",
		fmt.Sprintf("Invoice %d", o.Number), "",
		"To: " + o.Details.Name, "    " + o.Details.Email, "",
		fmt.Sprintf("%d x %s at %s", o.Details.Quantity, o.Product.Name, eur(o.Product.Cents)),
		fmt.Sprintf("Delivery: %s, %s", o.Details.Delivery, eur(deliveries[o.Details.Delivery])), "",
		"Total: " + eur(o.Total),
		"Paid by card ending in " + o.Last4,
	}
	var text strings.Builder
	text.WriteString("BT /F1 13 Tf 20 TL 72 760 Td\n")
	for _, l := range lines {
		fmt.Fprintf(&text, "(%s) Tj T*\n", pdfText(l))
	}
	text.WriteString("ET")
	return pdf([]string{
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
		fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", text.Len(), text.String()),
		"<< /Type /Font /Subtype /Type1 /BaseFont /Courier >>",
	})
}

// pdf puts numbered objects, the first being the catalogue, into a file.
func pdf(objects []string) []byte {
	var out bytes.Buffer
	out.WriteString("%PDF-1.4\n")
	offsets := make([]int, len(objects))
	for i, o := range objects {
		offsets[i] = out.Len()
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	table := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, at := range offsets {
		fmt.Fprintf(&out, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&out, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, table)
	return out.Bytes()
}

// pdfText escapes a string of the page; what the font lacks becomes a question mark.
func pdfText(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '(' || r == ')' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r > '~':
			b.WriteByte('?')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func eur(cents int) string { return strings.Replace(money(cents), "€", "EUR ", 1) }
