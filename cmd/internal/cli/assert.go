package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"reins/protocol"
)

func (a *app) waitCommand() *cobra.Command {
	var l look
	cmd := &cobra.Command{
		Use:   "wait ID",
		Short: "Wait until a text, an element or a URL is there, or gone",
		Long: "Wait until a text (--text), an element or a part of the URL (--url) is there, or gone with --gone.\n" +
			"It waits 30 seconds unless --deadline says otherwise. The exit code is 0 if it came, 7 if not.",
		Example: "  reins wait pg_… --text 'Thank you'\n  reins wait pg_… --role progressbar --gone --deadline 60s",
		Args:    exactly(1, "one ID"),
	}
	l.add(cmd)
	own := []short{{"url", "url", "part of the URL"}}
	addShort(cmd, locatorFlags, own)
	addContains(cmd)
	cmd.Flags().Bool("gone", false, "wait until it is absent")
	cmd.RunE = func(cmd *cobra.Command, words []string) error {
		args, err := waitArguments(cmd, own)
		if err != nil {
			return err
		}
		reply, err := a.read(cmd.Context(), l, words[0], protocol.MethodWait, args)
		if err != nil {
			return err
		}
		return a.verdict(reply.Verdict)
	}
	return cmd
}

// waitArguments reads --text as a text of the page, unless other flags make it that of an element.
func waitArguments(cmd *cobra.Command, own []short) (json.RawMessage, error) {
	b, err := newArguments(protocol.MethodWait)
	if err != nil {
		return nil, err
	}
	if err := b.take(cmd, locatorFlags, own); err != nil {
		return nil, err
	}
	if l, ok := b.tree["locator"].(map[string]any); ok && len(l) == 1 && l["text"] != nil {
		delete(b.tree, "locator")
		b.tree["text"] = l["text"]
	}
	if gone, _ := cmd.Flags().GetBool("gone"); gone {
		if err := b.set("gone", "true"); err != nil {
			return nil, err
		}
	}
	return b.raw()
}

var assertions = []string{"text", "value", "url", "present", "absent", "count"}

func (a *app) verifyCommand() *cobra.Command {
	var l look
	cmd := &cobra.Command{
		Use:   "verify ID " + strings.Join(assertions, "|"),
		Short: "Check one assertion against the real target",
		Long:  "Check one assertion against the real target. The exit code is 0 if it holds, 7 if not.",
		Example: "  reins verify pg_… text --has 'Thank you'\n  reins verify pg_… value --label Name --equals 'Ada Byron'\n" +
			"  reins verify pg_… url --has /orders/\n  reins verify pg_… count --role listitem --count 4",
		Args:      exactly(2, "ID and an assertion"),
		ValidArgs: assertions,
	}
	l.add(cmd)
	own := []short{
		{"has", "text", "what the text, value or URL must contain"},
		{"equals", "equals", "what the text, value or URL must be"},
		{"count", "count", "how many elements there must be"},
	}
	addShort(cmd, locatorFlags, own)
	addContains(cmd)
	cmd.RunE = func(cmd *cobra.Command, words []string) error {
		b, err := newArguments(protocol.MethodVerify)
		if err != nil {
			return err
		}
		if err := b.set("assert", words[1]); err != nil {
			return err
		}
		if err := b.take(cmd, locatorFlags, own); err != nil {
			return err
		}
		args, err := b.raw()
		if err != nil {
			return err
		}
		reply, err := a.read(cmd.Context(), l, words[0], protocol.MethodVerify, args)
		if err != nil {
			return err
		}
		return a.verdict(reply.Verdict)
	}
	return cmd
}

// verdict prints the answer of wait or verify.
func (a *app) verdict(v *protocol.Verdict) error {
	if v == nil {
		return fmt.Errorf("the daemon answered without a verdict; its log says more")
	}
	switch {
	case a.json:
		a.emit(v)
	case v.Holds:
		a.line("yes", clean(v.Message))
	default:
		words := []string{string(v.Reason)}
		if v.Message != "" {
			words = append(words, clean(v.Message))
		}
		if v.Actual != nil {
			words = append(words, "found "+quoted(*v.Actual, 300))
		}
		if v.Count != nil {
			words = append(words, fmt.Sprintf("found %d", *v.Count))
		}
		a.line("no:", strings.Join(words, "; "))
	}
	if !v.Holds {
		return said(exitFalse)
	}
	return nil
}
