package index

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"reins/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	began   = time.Unix(1_700_000_000, 0)
	key     = Key{Owner: "a", ID: "op1"}
	click   = [32]byte{1}
	press   = [32]byte{2}
	applied = protocol.Receipt{OperationID: "op1", State: protocol.StateApplied, Effect: protocol.EffectConfirmed}
)

// nothing is a store that knows no operation.
func nothing() (Stored, error) { return Stored{}, nil }

func begin(t *testing.T, x *Index, hash [32]byte, stored func() (Stored, error)) (Verdict, *Entry) {
	t.Helper()
	v, e, err := x.Begin(key, hash, began, stored)
	if err != nil {
		t.Fatal(err)
	}
	return v, e
}

// TestSameIDUnderWay (I1): the same request waits for the one under way, other
// content is refused, and who waited gets the receipt.
func TestSameIDUnderWay(t *testing.T) {
	var x Index
	v, e := begin(t, &x, click, nothing)
	if v != New {
		t.Fatalf("the first is %v", v)
	}
	if v, again := begin(t, &x, click, nothing); v != Wait || again != e {
		t.Fatalf("the same again is %v", v)
	}
	if v, _ := begin(t, &x, press, nothing); v != Reused {
		t.Fatalf("other content is %v", v)
	}
	select {
	case <-e.Done:
		t.Fatal("it is answered before its end")
	default:
	}
	x.End(key, applied, true)
	<-e.Done
	if e.Receipt.State != protocol.StateApplied {
		t.Fatalf("who waited got %s", e.Receipt.State)
	}
	if x.UnderWay() != 0 {
		t.Fatal("it is still under way")
	}
}

// TestRecorded (I2): what the store has is the answer, for the same content.
func TestRecorded(t *testing.T) {
	var x Index
	stored := func() (Stored, error) { return Stored{Known: true, Hash: click, Receipt: &applied}, nil }
	if v, e := begin(t, &x, click, stored); v != Answered || e.Receipt.State != protocol.StateApplied {
		t.Fatalf("%v", v)
	}
	if v, _ := begin(t, &x, press, stored); v != Reused {
		t.Fatalf("other content is %v", v)
	}
	admitted := func() (Stored, error) { return Stored{Known: true, Hash: click}, nil }
	v, e := begin(t, &x, click, admitted)
	if v != Answered || e.Receipt.State != protocol.StateUncertain || !e.Receipt.ObserveRequired {
		t.Fatalf("admitted without an outcome is %v, %s", v, e.Receipt.State)
	}
}

// TestNotRecorded (I2): an outcome that the store could not take is answered
// from memory, whatever the store says later; it is never run again.
func TestNotRecorded(t *testing.T) {
	for _, state := range []protocol.State{protocol.StateUncertain, protocol.StateApplied, protocol.StateFailed} {
		var x Index
		begin(t, &x, click, nothing)
		x.End(key, protocol.Receipt{State: state}, false)
		for range 2 {
			v, e := begin(t, &x, click, nothing)
			if v != Wait {
				t.Fatalf("after %s that could not be stored the id is %v", state, v)
			}
			<-e.Done
			if e.Receipt.State != state {
				t.Fatalf("it says %s, it was %s", e.Receipt.State, state)
			}
		}
		if v, _ := begin(t, &x, press, nothing); v != Reused {
			t.Fatalf("other content is %v", v)
		}
	}
}

// TestRefusalLeavesTheIDFree (I3), and so does what was cancelled in the queue.
func TestRefusalLeavesTheIDFree(t *testing.T) {
	for _, state := range []protocol.State{protocol.StateRefused, protocol.StateCancelled} {
		var x Index
		begin(t, &x, click, nothing)
		x.End(key, protocol.Receipt{State: state}, false)
		if v, _ := begin(t, &x, press, nothing); v != New {
			t.Fatalf("after %s the id is %v", state, v)
		}
	}
}

// TestCancelOvertakes (I4): a cancel that comes first is remembered for 60 s,
// and spent once.
func TestCancelOvertakes(t *testing.T) {
	var x Index
	cancel := func(at time.Time) {
		if under, answered, err := x.Cancel(key, at, nothing); under != nil || answered != nil || err != nil {
			t.Fatal(under, answered, err)
		}
	}
	at := func(d time.Duration) Verdict {
		v, _, _ := x.Begin(key, click, began.Add(d), nothing)
		if v == New {
			x.End(key, protocol.Receipt{State: protocol.StateRefused}, false)
		}
		return v
	}
	cancel(began)
	if v := at(protocol.CancelMemory); v != Overtaken {
		t.Fatalf("after 60 s it is %v", v)
	}
	if v := at(protocol.CancelMemory); v != New {
		t.Fatalf("the second time it is %v", v)
	}
	cancel(began)
	if v := at(protocol.CancelMemory + 1); v != New {
		t.Fatalf("later it is %v", v)
	}
	cancel(began)
	cancel(began.Add(protocol.CancelMemory)) // renewed
	if v := at(2 * protocol.CancelMemory); v != Overtaken {
		t.Fatalf("renewed it is %v", v)
	}
}

// TestCancelFinds what is under way, and what is done.
func TestCancelFinds(t *testing.T) {
	var x Index
	_, e := begin(t, &x, click, nothing)
	if under, _, _ := x.Cancel(key, began, nothing); under != e {
		t.Fatal("the operation under way was not found")
	}
	x.End(key, applied, true)
	_, answered, _ := x.Cancel(key, began, func() (Stored, error) { return Stored{Known: true, Hash: click, Receipt: &applied}, nil })
	if answered == nil || answered.State != protocol.StateApplied {
		t.Fatal("the receipt was not found")
	}
}

// TestStoreFails: nothing is bound while the store does not answer.
func TestStoreFails(t *testing.T) {
	var x Index
	broken := errors.New("no disk")
	fails := func() (Stored, error) { return Stored{}, broken }
	if _, _, err := x.Begin(key, click, began, fails); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	if _, _, err := x.Cancel(key, began, fails); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	if v, _ := begin(t, &x, press, nothing); v != New {
		t.Fatalf("%v", v)
	}
}

// TestCancelsAreBounded: a flood of cancels of unknown ids costs no more than
// the limit, and the latest count.
func TestCancelsAreBounded(t *testing.T) {
	var x Index
	for i := range 3 * maxCancelled {
		k := Key{Owner: "a", ID: protocol.OperationID(fmt.Sprint("op", i))}
		if _, _, err := x.Cancel(k, began, nothing); err != nil {
			t.Fatal(err)
		}
	}
	if len(x.cancelled) > maxCancelled || len(x.order) > maxCancelled {
		t.Fatalf("%d are remembered", len(x.cancelled))
	}
	last := Key{Owner: "a", ID: protocol.OperationID(fmt.Sprint("op", 3*maxCancelled-1))}
	if v, _, _ := x.Begin(last, click, began, nothing); v != Overtaken {
		t.Fatalf("the latest is %v", v)
	}
}

// TestInvariants holds I1 to I4 against random callers and a random store.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x Index
		now := began
		type row struct {
			hash [32]byte
			r    *protocol.Receipt
		}
		store := map[Key]row{}              // what is durable
		under := map[Key][32]byte{}         // begun and not ended
		bound := map[Key]protocol.Receipt{} // answered for ever
		hashes := map[Key][32]byte{}        // of bound
		cancelled := map[Key]time.Time{}    // overtook
		look := func(k Key) func() (Stored, error) {
			return func() (Stored, error) {
				s, ok := store[k]
				return Stored{Known: ok, Hash: s.hash, Receipt: s.r}, nil
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			k := Key{Owner: protocol.OwnerID(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "owner")), ID: protocol.OperationID(rapid.SampledFrom([]string{"1", "2"}).Draw(t, "id"))}
			now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "s")) * time.Second)
			at, overtook := cancelled[k]
			overtook = overtook && now.Sub(at) <= protocol.CancelMemory
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0, 1:
				hash := [32]byte{byte(rapid.IntRange(1, 2).Draw(t, "hash"))}
				v, e, err := x.Begin(k, hash, now, look(k))
				if err != nil {
					t.Fatal(err)
				}
				busy, isBusy := under[k]
				known, isBound := bound[k]
				want := New
				switch {
				case isBusy && busy == hash:
					want = Wait
				case isBusy, isBound && hashes[k] != hash:
					want = Reused
				case isBound:
					want = Answered
				case overtook:
					want = Overtaken
				}
				if v == Wait && isBound { // answered from memory
					<-e.Done
					v = Answered
				}
				if v != want {
					t.Fatalf("I1 to I4: %v of %v is %v, not %v", hash[0], k, v, want)
				}
				if v == Answered && e.Receipt.State != known.State {
					t.Fatalf("I2: %v is answered as %s, it was %s", k, e.Receipt.State, known.State)
				}
				if v == New {
					under[k] = hash
				}
				if v == Overtaken {
					delete(cancelled, k)
				}
			case 2:
				hash, busy := under[k]
				state := rapid.SampledFrom([]protocol.State{protocol.StateApplied, protocol.StateFailed, protocol.StateUncertain, protocol.StateRefused, protocol.StateCancelled}).Draw(t, "state")
				r := protocol.Receipt{OperationID: k.ID, State: state}
				recorded := state != protocol.StateRefused && rapid.Bool().Draw(t, "recorded")
				x.End(k, r, recorded)
				if !busy {
					continue
				}
				delete(under, k)
				if recorded {
					store[k] = row{hash, &r}
				}
				if recorded || dispatched(state) {
					bound[k], hashes[k] = r, hash
				}
			case 3:
				e, answered, err := x.Cancel(k, now, look(k))
				_, busy := under[k]
				_, isBound := bound[k]
				if err != nil || (busy || isBound) != (e != nil || answered != nil) {
					t.Fatalf("I4: the cancel of %v found %v, %v, %v", k, e, answered, err)
				}
				if !busy && !isBound {
					cancelled[k] = now
				}
			default:
				if x.UnderWay() != len(under) {
					t.Fatalf("I1: %d are under way, not %d", x.UnderWay(), len(under))
				}
			}
		}
	})
}
