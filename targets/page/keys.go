package page

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp/kb"
)

// chord is a key with the modifiers held while it is pressed.
type chord struct {
	modifiers []string // in the order of pressing
	bits      int64
	key       keyStroke
}

// keyStroke is one key of the US layout.
type keyStroke struct {
	key, code string
	text      string // what it types without Control, Alt or Meta; empty for none
	windows   int64
	shift     bool // the layout needs Shift for it
}

// modifierKeys are the modifiers by the names the contract uses.
var modifierKeys = map[string]struct {
	bit  kb.Modifier
	code string
	vk   int64
}{
	"Alt":     {kb.ModifierAlt, "AltLeft", 18},
	"Control": {kb.ModifierCtrl, "ControlLeft", 17},
	"Meta":    {kb.ModifierMeta, "MetaLeft", 91},
	"Shift":   {kb.ModifierShift, "ShiftLeft", 16},
}

// namedKeys are the keys without a character, by their DOM name, and the
// characters that have a name too.
var namedKeys = func() map[string]keyStroke {
	m := map[string]keyStroke{"Space": {key: " ", code: "Space", text: " ", windows: 32}}
	for r, k := range kb.Keys {
		if utf8.RuneCountInString(k.Key) > 1 && (r < ' ' || r >= 0x7f) {
			s := keyStroke{key: k.Key, code: k.Code, windows: k.Windows}
			if k.Key == "Enter" {
				s.text = "\r"
			}
			if have, ok := m[k.Key]; ok && preferred(have, s) {
				continue
			}
			m[k.Key] = s
		}
	}
	return m
}()

// preferred keeps, of two keys with one name, the one on the main block.
func preferred(have, s keyStroke) bool {
	if have.code == have.key {
		return true
	}
	if s.code == s.key {
		return false
	}
	return have.code <= s.code
}

// parseChord reads "Enter", "a" or "Control+Shift+ArrowLeft".
func parseChord(s string) (chord, error) {
	var c chord
	rest := s
	for {
		i := strings.IndexByte(rest, '+')
		if i <= 0 || i == len(rest)-1 {
			break
		}
		name := rest[:i]
		mod, ok := modifierKeys[name]
		if !ok {
			return c, fmt.Errorf("%q is no modifier; use Alt, Control, Meta or Shift before the key, as in Control+A", name)
		}
		if c.bits&mod.bit.Int64() != 0 {
			return c, fmt.Errorf("%s is named twice", name)
		}
		c.modifiers = append(c.modifiers, name)
		c.bits |= mod.bit.Int64()
		rest = rest[i+1:]
	}
	k, ok := strokeOf(rest)
	if !ok {
		return c, fmt.Errorf("there is no key %q; use a name such as Enter or ArrowLeft, or one character of the US layout", rest)
	}
	c.key = k
	if len(c.modifiers) > 0 && len(k.key) == 1 && unicode.IsUpper(rune(k.key[0])) && c.bits&kb.ModifierShift.Int64() == 0 {
		// Control+A means the key A, as people write it, not Control+Shift+A.
		lower, _ := strokeOf(strings.ToLower(k.key))
		c.key = lower
	}
	if c.key.shift && c.bits&kb.ModifierShift.Int64() == 0 {
		c.modifiers = append(c.modifiers, "Shift")
		c.bits |= kb.ModifierShift.Int64()
	}
	if c.bits&kb.ModifierShift.Int64() != 0 && len(c.key.key) == 1 && unicode.IsLower(rune(c.key.key[0])) {
		if upper, ok := strokeOf(strings.ToUpper(c.key.key)); ok {
			c.key = upper
		}
	}
	return c, nil
}

func strokeOf(name string) (keyStroke, bool) {
	if utf8.RuneCountInString(name) == 1 {
		r, _ := utf8.DecodeRuneInString(name)
		return charStroke(r)
	}
	if mod, ok := modifierKeys[name]; ok {
		return keyStroke{key: name, code: mod.code, windows: mod.vk}, true
	}
	k, ok := namedKeys[name]
	return k, ok
}

// charStroke is the key that types a printable ASCII character.
func charStroke(r rune) (keyStroke, bool) {
	if r < ' ' || r > '~' {
		return keyStroke{}, false
	}
	k, ok := kb.Keys[r]
	if !ok {
		return keyStroke{}, false
	}
	return keyStroke{key: k.Key, code: k.Code, text: k.Text, windows: k.Windows, shift: k.Shift}, true
}

// down and up are the events of a stroke under the modifiers held.
func (k keyStroke) down(bits int64) *input.DispatchKeyEventParams {
	p := k.event(input.DispatchKeyEventTypeRawKeyDown, bits)
	// Control, Alt and Meta turn a character into a command.
	if k.text != "" && bits&^kb.ModifierShift.Int64() == 0 {
		p.Type = input.DispatchKeyEventTypeKeyDown
		p.Text, p.UnmodifiedText = k.text, k.text
	}
	p.Commands = editCommands(k, bits)
	return p
}

func (k keyStroke) up(bits int64) *input.DispatchKeyEventParams {
	return k.event(input.DispatchKeyEventTypeKeyUp, bits)
}

func (k keyStroke) event(t input.DispatchKeyEventType, bits int64) *input.DispatchKeyEventParams {
	return &input.DispatchKeyEventParams{
		Type: t, Modifiers: bits, Key: k.key, Code: k.code, WindowsVirtualKeyCode: k.windows, NativeVirtualKeyCode: k.windows,
	}
}

// editCommands are the editing commands that a desktop's browser runs for a key
// and that synthesised keys do not run by themselves.
func editCommands(k keyStroke, bits int64) []string {
	if bits == kb.ModifierCtrl.Int64() && k.code == "KeyA" {
		return []string{"selectAll"}
	}
	return nil
}

// cluster is a piece of text that is typed at once.
type cluster struct {
	text string
	key  *keyStroke // nil: it has no key of its own and is inserted as text
}

// clusters splits text into what a person would see as one character, so that
// marks, joined emoji and flags arrive whole.
func clusters(text string) []cluster {
	var out []cluster
	rs := []rune(text)
	for i := 0; i < len(rs); {
		j := i + 1
		if isFlag(rs[i]) && j < len(rs) && isFlag(rs[j]) {
			j++
		}
		for j < len(rs) && joins(rs[j-1], rs[j]) {
			j++
		}
		c := cluster{text: string(rs[i:j])}
		if j == i+1 {
			if k, ok := charStroke(rs[i]); ok {
				c.key = &k
			}
		}
		out = append(out, c)
		i = j
	}
	return out
}

const joiner = '\u200d'

func isFlag(r rune) bool { return r >= 0x1F1E6 && r <= 0x1F1FF }

// joins reports whether next belongs to the same cluster as before.
func joins(before, next rune) bool {
	if before == '\n' || next == '\n' {
		return false
	}
	return unicode.In(next, unicode.Mn, unicode.Mc, unicode.Me) || next == joiner || before == joiner ||
		(next >= 0x1F3FB && next <= 0x1F3FF) || (next >= 0xFE00 && next <= 0xFE0F) || (next >= 0xE0020 && next <= 0xE007F)
}
