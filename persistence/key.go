package persistence

import (
	"encoding/binary"
	"fmt"

	"reins/protocol"
)

// The kinds of keys. Each is one byte in front; numbers are big-endian, so that
// the order of keys is the order of numbers.
const (
	keyMeta       = 'm' // m<name>
	keyRecord     = 'r' // r<resource>                     → descriptor
	keyGeneration = 'g' // g<resource>                     → generation
	keyEpoch      = 'e' // e<resource>                     → reserved epoch
	keyOperation  = 'o' // o<owner><operation>             → operation
	keyPending    = 'p' // p<owner><operation>             → nothing: has, or had a moment ago, no outcome
	keyTurn       = 't' // t<owner><ordinal><finished>     → operation id: an owner's outcomes in their order
	keyHistory    = 'h' // h<position><at>                 → history entry; position counts bytes
	keyCookies    = 'c' // c<profile>                      → cookies
	keyClean      = 'k' // k<profile>                      → 1: ended in order
)

const (
	metaSchema  = "schema"
	metaHashKey = "hash_key"
)

func named(kind byte, name string) []byte { return append([]byte{kind}, name...) }

// operationKey is the key of an operation under one of two kinds. The length in
// front of the owner keeps "a"+"bc" and "ab"+"c" apart.
func operationKey(kind byte, o protocol.OwnerID, id protocol.OperationID) []byte {
	return append(ownerPrefix(kind, o), id...)
}

func ownerPrefix(kind byte, o protocol.OwnerID) []byte {
	k := make([]byte, 0, 2*binary.MaxVarintLen64+len(o)+protocol.MaxIDBytes)
	k = append(k, kind)
	k = binary.AppendUvarint(k, uint64(len(o)))
	return append(k, o...)
}

func turnKey(o protocol.OwnerID, ordinal uint64, finished protocol.Time) []byte {
	k := binary.BigEndian.AppendUint64(ownerPrefix(keyTurn, o), ordinal)
	return binary.BigEndian.AppendUint64(k, uint64(finished))
}

func historyKey(position uint64, at protocol.Time) []byte {
	k := binary.BigEndian.AppendUint64([]byte{keyHistory}, position)
	return binary.BigEndian.AppendUint64(k, uint64(at))
}

// splitOwner takes kind and owner off a key.
func splitOwner(k []byte) (o protocol.OwnerID, rest []byte, err error) {
	if len(k) > 0 {
		n, used := binary.Uvarint(k[1:])
		if used > 0 && n <= uint64(len(k)-1-used) {
			k = k[1+used:]
			return protocol.OwnerID(k[:n]), k[n:], nil
		}
	}
	return "", nil, fmt.Errorf("key %q has no owner: %w", k, ErrCorrupt)
}

func splitOperation(k []byte) (operationID, error) {
	o, rest, err := splitOwner(k)
	return operationID{o, protocol.OperationID(rest)}, err
}

func splitTurn(k []byte) (o protocol.OwnerID, ordinal uint64, finished protocol.Time, err error) {
	o, rest, err := splitOwner(k)
	if err == nil && len(rest) != 16 {
		err = fmt.Errorf("key %q has no place in the order: %w", k, ErrCorrupt)
	}
	if err != nil {
		return "", 0, 0, err
	}
	return o, binary.BigEndian.Uint64(rest), protocol.Time(binary.BigEndian.Uint64(rest[8:])), nil
}

func splitHistory(k []byte) (position uint64, at protocol.Time, err error) {
	if len(k) != 17 {
		return 0, 0, fmt.Errorf("key %q is none of history: %w", k, ErrCorrupt)
	}
	return binary.BigEndian.Uint64(k[1:]), protocol.Time(binary.BigEndian.Uint64(k[9:])), nil
}

// after is the first key behind all that begin with prefix.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}
