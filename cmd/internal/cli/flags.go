package cli

import (
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"reins/protocol"
)

// short is a flag that stands for one argument of a method.
type short struct {
	flag, path, doc string
}

// locatorFlags name an element; every method that acts on one takes them.
var locatorFlags = []short{
	{"ref", "locator.ref", "element by the ref of an observation"},
	{"role", "locator.role", "element by ARIA role; goes with --name"},
	{"name", "locator.name", "accessible name of the element"},
	{"label", "locator.label", "element by its label"},
	{"text", "locator.text", "element by its text"},
	{"test-id", "locator.test_id", "element by data-testid"},
	{"placeholder", "locator.placeholder", "field by its placeholder"},
	{"css", "locator.css", "element by CSS selector"},
	{"frame", "locator.frame", "look only in the frame of this name, id or URL"},
}

// valueFlags are the other arguments that have a flag.
var valueFlags = []short{
	{"point", "point", "place x,y in CSS pixels; needs --observation"},
	{"to-ref", "to_locator.ref", "drag: element to drop on"},
	{"to-css", "to_locator.css", "drag: element to drop on, by CSS selector"},
	{"to-point", "to_point", "drag: place x,y to drop at"},
	{"steps", "steps", "drag: number of moves, 1 to 100"},
	{"value", "text", "fill, type: the text"},
	{"key", "key", "press: the key, such as Enter or Control+A"},
	{"url", "url", "navigate: the address"},
	{"dx", "dx", "scroll: CSS pixels to the right"},
	{"dy", "dy", "scroll: CSS pixels down"},
	{"button", "button", "click: left, right or middle"},
	{"count", "count", "click: 1 to 3"},
	{"modifiers", "modifiers", "click: keys held, as Control,Shift"},
	{"answer", "text", "dialog: the text for a prompt"},
	{"width", "width", "viewport: CSS pixels"},
	{"height", "height", "viewport: CSS pixels"},
	{"scale", "scale", "viewport: device pixel ratio"},
}

// addShort declares flags whose values are read as text and converted by the method.
func addShort(cmd *cobra.Command, all ...[]short) {
	for _, s := range slices.Concat(all...) {
		cmd.Flags().String(s.flag, "", s.doc)
	}
}

// addContains declares the flag that turns a whole match into a part.
func addContains(cmd *cobra.Command) {
	cmd.Flags().Bool("contains", false, "match a part of the name, label or text, ignoring case")
}

// take puts the flags that were given into the arguments.
func (a *arguments) take(cmd *cobra.Command, all ...[]short) error {
	for _, s := range slices.Concat(all...) {
		f := cmd.Flags().Lookup(s.flag)
		if f == nil || !f.Changed {
			continue
		}
		if err := a.set(s.path, f.Value.String()); err != nil {
			return err
		}
	}
	if f := cmd.Flags().Lookup("contains"); f != nil && f.Changed {
		return a.set("locator.contains", f.Value.String())
	}
	return nil
}

// addAnswer declares the two flags that answer a dialog.
func addAnswer(cmd *cobra.Command) {
	cmd.Flags().Bool("accept", false, "dialog: accept it")
	cmd.Flags().Bool("dismiss", false, "dialog: dismiss it")
	cmd.MarkFlagsMutuallyExclusive("accept", "dismiss")
}

// takeAnswer turns --accept and --dismiss into the dialog's argument.
func (a *arguments) takeAnswer(cmd *cobra.Command) error {
	for flag, accept := range map[string]bool{"accept": true, "dismiss": false} {
		if on, err := cmd.Flags().GetBool(flag); err == nil && on {
			return a.set("accept", strconv.FormatBool(accept))
		}
	}
	if a.method == protocol.MethodDialog && a.tree["accept"] == nil {
		return usagef("say --accept or --dismiss: a dialog is never answered by itself")
	}
	return nil
}
