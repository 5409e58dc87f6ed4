package protocol

import (
	"slices"
	"strings"
	"unicode"
)

func checkNothing[T any](*T, *faults) {}

func checkOpen(a *OpenArguments, f *faults) {
	f.unless(a.Kind == KindPage, "kind", `must be "page": only Pages can be opened`)
	if a.URL != "" {
		f.url("url", a.URL)
	}
	if a.Viewport != nil {
		in := f.in("viewport")
		in.size(a.Viewport.Width, a.Viewport.Height, a.Viewport.Scale)
		f.take(in)
	}
}

func checkNavigate(a *NavigateArguments, f *faults) { f.url("url", a.URL) }

func checkClick(a *ClickArguments, f *faults) {
	f.target("", a.Locator, a.Point)
	f.oneOf("button", a.Button, "left", "right", "middle")
	if a.Count != 0 {
		f.between("count", a.Count, 1, 3, "")
	}
	for i, m := range a.Modifiers {
		f.unless(m != "" && !slices.Contains(a.Modifiers[:i], m), "modifiers", "must name each modifier once")
		f.oneOf("modifiers", m, "Alt", "Control", "Meta", "Shift")
	}
}

func checkHover(a *HoverArguments, f *faults) { f.target("", a.Locator, a.Point) }

func checkDrag(a *DragArguments, f *faults) {
	f.target("", a.Locator, a.Point)
	f.target("to_", a.ToLocator, a.ToPoint)
	if a.Steps != 0 {
		f.between("steps", a.Steps, 1, maxSteps, "moves")
	}
}

func checkFill(a *FillArguments, f *faults) {
	f.need("locator", a.Locator)
	f.text("text", a.Text, 0, MaxTextBytes)
}

func checkType(a *TypeArguments, f *faults) {
	f.locator("locator", a.Locator)
	f.text("text", a.Text, 1, MaxTextBytes)
}

func checkPress(a *PressArguments, f *faults) {
	f.locator("locator", a.Locator)
	f.text("key", a.Key, 1, maxKeyBytes)
	f.unless(!strings.ContainsFunc(a.Key, unicode.IsControl), "key", "must be the name of a key, such as Enter, and no control character")
}

func checkScroll(a *ScrollArguments, f *faults) {
	if a.Locator != nil || a.Point != nil {
		f.target("", a.Locator, a.Point)
	}
	inRange(f, "dx", a.DX, -maxScroll, maxScroll, "CSS pixels")
	inRange(f, "dy", a.DY, -maxScroll, maxScroll, "CSS pixels")
	f.unless(a.DX != 0 || a.DY != 0, "dy", "or dx must be other than 0")
}

func checkViewport(a *ViewportArguments, f *faults) { f.size(a.Width, a.Height, a.Scale) }

func checkDialog(a *DialogArguments, f *faults) {
	if a.Text != nil {
		f.text("text", *a.Text, 0, MaxTextBytes)
		f.unless(a.Accept, "text", "goes with accept: true")
	}
}

func checkDownload(a *DownloadArguments, f *faults) { f.need("locator", a.Locator) }

func checkObserve(a *ObserveArguments, f *faults) {
	f.text("find", a.Find, 0, MaxNameBytes)
	f.between("limit", a.Limit, 0, maxControls, "controls")
	f.between("offset", a.Offset, 0, maxOffset, "controls")
}

func checkScreenshot(a *ScreenshotArguments, f *faults) {
	f.oneOf("format", a.Format, "png", "jpeg")
	if a.Quality != 0 {
		f.between("quality", a.Quality, 1, 100, "")
		f.unless(a.Format == "jpeg", "quality", `goes with format "jpeg"`)
	}
}

func checkWait(a *WaitArguments, f *faults) {
	f.exactlyOne("text, locator, url", a.Text != "", a.Locator != nil, a.URL != "")
	f.text("text", a.Text, 0, MaxNameBytes)
	f.text("url", a.URL, 0, MaxURLBytes)
	f.locator("locator", a.Locator)
}

// checkVerify holds which arguments an assertion takes: equals is the whole of
// it, text a part.
func checkVerify(a *VerifyArguments, f *faults) {
	f.unless(a.Assert != "", "assert", "must be text, value, url, present, absent or count")
	f.oneOf("assert", a.Assert, "text", "value", "url", "present", "absent", "count")
	f.locator("locator", a.Locator)
	f.text("text", a.Text, 0, MaxTextBytes)
	if a.Equals != nil {
		f.text("equals", *a.Equals, 0, MaxTextBytes)
	}
	if a.Count != nil {
		f.between("count", *a.Count, 0, maxCount, "elements")
	}
	switch a.Assert {
	case "text", "value", "url":
		f.exactlyOne("text, equals", a.Text != "", a.Equals != nil)
		f.unless(a.Assert != "value" || a.Locator != nil, "locator", "is missing; a value is that of one element")
		f.unless(a.Assert != "url" || a.Locator == nil, "locator", "means nothing for the URL of a page")
	case "present", "absent":
		f.exactlyOne("locator, text", a.Locator != nil, a.Text != "")
		f.unless(a.Equals == nil, "equals", "means nothing for "+a.Assert)
	case "count":
		f.unless(a.Locator != nil, "locator", "is missing; it names what is counted")
		f.unless(a.Count != nil, "count", "is missing; it must be a whole number")
		f.unless(a.Text == "" && a.Equals == nil, "text", "and equals mean nothing for count")
	}
	f.unless(a.Count == nil || a.Assert == "count", "count", "goes with assert: count")
}
