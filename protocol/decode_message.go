package protocol

import (
	"encoding/json"
	"reflect"
)

// DecodeMessage reads a message that is neither a write nor a look (hello, a
// query, a demand, …) as strictly as those: size, text, depth, no unknown or
// repeated field. Ranges are the handler's to check.
func DecodeMessage[T any](raw []byte) (T, *Problem) {
	var m T
	if p := checkMessage(raw, reflect.TypeFor[T]()); p != nil {
		return m, p
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		var none T
		return none, problem(ReasonBadRequest, "The message cannot be read: %v.", err)
	}
	return m, nil
}

// CheckID checks an identifier that a caller gave: 1–128 bytes of printable
// ASCII without spaces. name is what the refusal calls it.
func CheckID(name, id string) *Problem { return checkID(name, id) }
