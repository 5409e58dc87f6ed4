package persistence

import (
	"bytes"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"reins/protocol"
)

const (
	historyMost    = 1000 // entries of one answer
	historyDefault = 100
)

// addHistory adds an entry at the end. Its position counts the bytes before it,
// so that first and last position tell how much there is.
func (t *tx) addHistory(e protocol.HistoryEntry) error {
	v, err := encode(e)
	if err != nil {
		return err
	}
	t.set(historyKey(t.history.last, e.At), v)
	t.history.last += uint64(len(v))
	return nil
}

// historySpan is from where to where the positions reach.
func historySpan(db pebble.Reader) (span, error) {
	first, last, found, err := ends(db, []byte{keyHistory})
	if err != nil || !found {
		return span{}, err
	}
	from, _, err := splitHistory(first)
	if err != nil {
		return span{}, err
	}
	to, _, err := splitHistory(last)
	if err != nil {
		return span{}, err
	}
	v, _, err := get(db, last)
	return span{first: from, last: to + uint64(len(v))}, err
}

// AppendHistory adds an entry to the history. It is not synced: a power cut may
// take the last ones. It is refused while space is below the reserve.
func (s *Store) AppendHistory(h protocol.HistoryEntry) error {
	return s.do(&job{optional: true, build: func(t *tx) error { return t.addHistory(h) }}).err
}

// History returns the newest entries that fit the query, newest last. Since is
// read backwards from the newest: it ends at the first entry that is older.
func (s *Store) History(q protocol.HistoryQuery) ([]protocol.HistoryEntry, error) {
	limit := q.Limit
	if limit <= 0 {
		limit = historyDefault
	}
	limit = min(limit, historyMost)
	var found []protocol.HistoryEntry
	err := s.read(func(db pebble.Reader) error {
		it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{keyHistory}, UpperBound: after([]byte{keyHistory})})
		if err != nil {
			return readError(err)
		}
		for ok := it.Last(); ok && len(found) < limit; ok = it.Prev() {
			_, at, err := splitHistory(it.Key())
			if err != nil {
				return errors.Join(err, it.Close())
			}
			if at < q.Since {
				break
			}
			e, fits, err := fitting(it, q)
			if err != nil {
				return errors.Join(err, it.Close())
			}
			if fits {
				found = append(found, e)
			}
		}
		if err := errors.Join(it.Error(), it.Close()); err != nil {
			return readError(err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.Reverse(found)
	return found, nil
}

// fitting reads the entry at the iterator if it may fit the query.
func fitting(it *pebble.Iterator, q protocol.HistoryQuery) (e protocol.HistoryEntry, fits bool, err error) {
	v, err := it.ValueAndErr()
	if err != nil {
		return e, false, readError(err)
	}
	// Most entries of a long history are of other resources: those are told
	// apart without decoding them.
	if !bytes.Contains(v, plainPart(string(q.Resource))) || !bytes.Contains(v, plainPart(string(q.Owner))) {
		return e, false, nil
	}
	if e, err = decodeHistory(v); err != nil {
		return e, false, err
	}
	return e, (q.Resource == "" || e.Resource == q.Resource) && (q.Owner == "" || e.Owner == q.Owner), nil
}

// plainPart is a word as it stands in JSON, or nothing where it would be escaped.
func plainPart(word string) []byte {
	for i := range len(word) {
		if c := word[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return nil
		}
	}
	return []byte(word)
}
