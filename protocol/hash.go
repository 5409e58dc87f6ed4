package protocol

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ContentHash is the keyed hash by which a repeated operation is known to be the
// same: over resource, method, observation and arguments. The order of keys,
// white space, how a character or number is written and nulls do not matter.
// Generation and deadline are not content.
func ContentHash(key []byte, r Request) [32]byte {
	h := hmac.New(sha256.New, key)
	for _, part := range [][]byte{
		[]byte("reins content 1"), []byte(r.Resource), []byte(r.Method), []byte(r.Observation), canonical(r.Arguments),
	} {
		// Lengths keep the parts apart, so that no two requests give the same bytes.
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	return [32]byte(h.Sum(nil))
}

// canonical writes arguments in one way. What is not JSON is taken as it is.
func canonical(raw json.RawMessage) []byte {
	raw = orEmpty(raw)
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if !utf8.Valid(raw) || !json.Valid(raw) || d.Decode(&v) != nil {
		return append([]byte("raw:"), raw...)
	}
	out, err := json.Marshal(plain(v)) // sorts keys
	if err != nil {
		return append([]byte("raw:"), raw...)
	}
	return out
}

func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if value == nil {
				delete(v, key)
				continue
			}
			v[key] = plain(value)
		}
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case json.Number:
		return plainNumber(v)
	}
	return v
}

// plainNumber writes equal numbers in the same way, without ever making
// different ones equal: a whole number that a float cannot hold stays as it is.
func plainNumber(n json.Number) json.Number {
	const exact = 1 << 53
	f, err := n.Float64()
	switch {
	case err != nil:
		return n
	case f > -exact && f < exact && f == math.Trunc(f):
		return json.Number(strconv.FormatInt(int64(f), 10))
	case !strings.ContainsAny(string(n), ".eE"):
		return n
	}
	return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
}
