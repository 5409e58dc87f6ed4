package persistence

import "github.com/cockroachdb/pebble/v2"

// PutCookies stores a profile's cookies, synced. It is refused while space is
// below the reserve: outcomes come first.
func (s *Store) PutCookies(profile string, b []byte) error {
	return s.do(&job{synced: true, optional: true, build: func(t *tx) error {
		t.set(named(keyCookies, profile), b)
		return nil
	}}).err
}

// Cookies returns a profile's cookies, nil if there are none, and whether the
// profile was last marked as ended in order.
func (s *Store) Cookies(profile string) (b []byte, clean bool, err error) {
	err = s.read(func(db pebble.Reader) error {
		v, found, err := get(db, named(keyCookies, profile))
		if err != nil {
			return err
		}
		if found {
			b = v
		}
		v, found, err = get(db, named(keyClean, profile))
		clean = found && len(v) == 1 && v[0] == 1
		return err
	})
	return b, clean, err
}

// MarkClean notes, synced, whether a profile ended in order.
func (s *Store) MarkClean(profile string, clean bool) error {
	v := []byte{0}
	if clean {
		v[0] = 1
	}
	return s.do(&job{synced: true, build: func(t *tx) error {
		t.set(named(keyClean, profile), v)
		return nil
	}}).err
}
