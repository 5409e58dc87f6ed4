package cli

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"reins/protocol"
)

// operation has the flags of every write.
type operation struct {
	id          string
	observation string
	generation  uint64
	deadline    time.Duration
	given       func(flag string) bool
}

func (o *operation) add(cmd *cobra.Command) {
	f := cmd.Flags()
	o.given = f.Changed
	f.StringVar(&o.id, "id", "", "operation id; random by default. The same id with the same content never acts twice")
	f.StringVar(&o.observation, "observation", "", "token of the observation that this rests on")
	f.Uint64Var(&o.generation, "generation", 0, "generation meant; by default the one that the resource has now")
	f.DurationVar(&o.deadline, "deadline", 0, "how long it may take in all, such as 30s")
}

// request makes a request of the flags. It has no generation yet where none was given.
func (o *operation) request(id string, m protocol.Method, args json.RawMessage) (protocol.Request, error) {
	ms, err := milliseconds(o.deadline)
	if err != nil {
		return protocol.Request{}, err
	}
	// An empty variable must not lift what the caller meant to rest on.
	if o.given("id") && o.id == "" || o.given("observation") && o.observation == "" || o.given("generation") && o.generation == 0 {
		return protocol.Request{}, usagef("--id, --observation and --generation are not empty where they are given")
	}
	op := o.id
	if op == "" {
		op = "op-" + strings.ToLower(rand.Text())
	}
	if !utf8.ValidString(id + op + o.observation) {
		return protocol.Request{}, usagef("an id or token is not UTF-8")
	}
	return protocol.Request{
		OperationID: protocol.OperationID(op), Resource: protocol.ResourceID(id), Generation: protocol.Generation(o.generation),
		Method: m, Observation: protocol.Token(o.observation), Arguments: args, DeadlineMS: ms,
	}, nil
}

func milliseconds(d time.Duration) (int64, error) {
	if d < 0 || d > protocol.MaxDeadline || d != 0 && d < time.Millisecond {
		return 0, usagef("--deadline is 1ms to %s", protocol.MaxDeadline)
	}
	return d.Milliseconds(), nil
}

func (a *app) doCommand() *cobra.Command {
	var o operation
	cmd := &cobra.Command{
		Use:   "do ID METHOD [key=value… | JSON]",
		Short: "Do one thing to a target and print its receipt",
		Long: "Do one thing to a target and print its receipt.\n\n" + methodsHelp() + "\n" +
			"An element is named by one of --ref, --role with --name, --label, --text, --test-id, --placeholder, --css.\n" +
			"With - as the method a JSON list of primitives is read from standard input and done in order:\n" +
			`  [{"method":"fill","arguments":{"locator":{"label":"Name"},"text":"Ada"}}, …]`,
		Example: "  reins do pg_… click --role button --name Save\n  reins do pg_… fill --label Name --value 'Ada Byron'\n" +
			"  reins do pg_… press key=Control+A\n  reins do pg_… navigate --url https://example.org/\n  reins do pg_… dialog --accept",
		Args: atLeast(2, "ID and METHOD"),
	}
	o.add(cmd)
	addShort(cmd, locatorFlags, valueFlags)
	addContains(cmd)
	addAnswer(cmd)
	cmd.Flags().Bool("value-stdin", false, "fill, type: read the text from standard input, so that it is not on the command line")
	cmd.RunE = func(cmd *cobra.Command, words []string) error {
		m, args, err := a.doArguments(cmd, words[1], words[2:])
		if err != nil {
			return err
		}
		r, err := o.request(words[0], m, args)
		if err != nil {
			return err
		}
		return a.write(cmd.Context(), r)
	}
	return cmd
}

// methodsHelp has a line for each method that do takes.
func methodsHelp() string {
	var b strings.Builder
	for m := range protocol.Methods {
		if m.Kind == protocol.KindWrite && m.Method != protocol.MethodOpen {
			fmt.Fprintf(&b, "  %-10s %s\n", m.Method, m.Doc)
		}
	}
	return b.String()
}

// doArguments reads what follows the target: a method with its words and flags, or a list from standard input.
func (a *app) doArguments(cmd *cobra.Command, method string, words []string) (protocol.Method, json.RawMessage, error) {
	if method == "-" {
		if len(words) > 0 {
			return "", nil, usagef("nothing follows the -: the list comes from standard input")
		}
		args, err := primitives(a.in)
		return protocol.MethodBatch, args, err
	}
	if info, ok := protocol.Method(method).Info(); ok && (info.Kind == protocol.KindRead || info.Method == protocol.MethodOpen) {
		return "", nil, usagef("%s is a command of its own: reins %s", method, method)
	}
	b, err := newArguments(protocol.Method(method))
	if err != nil {
		return "", nil, err
	}
	for _, w := range words {
		if err := b.word(w); err != nil {
			return "", nil, err
		}
	}
	if err := b.take(cmd, locatorFlags, valueFlags); err != nil {
		return "", nil, err
	}
	if on, _ := cmd.Flags().GetBool("value-stdin"); on {
		text, err := readAll(a.in, protocol.MaxTextBytes)
		if err != nil {
			return "", nil, err
		}
		if err := b.set("text", strings.TrimSuffix(text, "\n")); err != nil {
			return "", nil, err
		}
	}
	if err := b.takeAnswer(cmd); err != nil {
		return "", nil, err
	}
	args, err := b.raw()
	return b.method, args, err
}

// primitives reads a JSON list of primitives as the arguments of a batch.
func primitives(in io.Reader) (json.RawMessage, error) {
	text, err := readAll(in, protocol.MaxRequestBytes)
	if err != nil {
		return nil, err
	}
	list, err := oneValue[[]json.RawMessage](text)
	if err != nil {
		return nil, usagef("standard input is no JSON list of primitives: %v", err)
	}
	if len(list) == 0 || len(list) > protocol.MaxPrimitives {
		return nil, usagef("the list has %d primitives; 1 to %d are wanted", len(list), protocol.MaxPrimitives)
	}
	return json.RawMessage(`{"primitives":` + strings.TrimSpace(text) + `}`), nil
}

// readAll reads text of at most limit bytes.
func readAll(in io.Reader, limit int) (string, error) {
	b, err := io.ReadAll(io.LimitReader(in, int64(limit)+1))
	switch {
	case err != nil:
		return "", &outcome{exitOther, fmt.Errorf("standard input cannot be read: %w", err)}
	case len(b) > limit:
		return "", usagef("standard input has more than %d bytes", limit)
	case !utf8.Valid(b):
		return "", usagef("standard input is not UTF-8")
	}
	return string(b), nil
}
