package persistence

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"

	"reins/protocol"
)

// forever is how a child waits to be killed.
func forever() error {
	_, err := bufio.NewReader(os.Stdin).ReadByte()
	return err
}

// childHold opens a store and keeps it.
func childHold(dir string) error {
	if _, err := Open(dir, Options{}); err != nil {
		return err
	}
	fmt.Println("ready")
	return forever()
}

// childSettle leaves operations at each point between admission and end.
func childSettle(dir string) error {
	s, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	marks := map[string]Mark{}
	for _, id := range []string{"unset", "set", "done"} {
		if marks[id], err = s.Admit(admission("ann", id)); err != nil {
			return err
		}
	}
	marks["set"].Set()
	marks["done"].Set()
	if err := s.Finish(ending("ann", "done", protocol.StateApplied)); err != nil {
		return err
	}
	fmt.Println("ready")
	return forever()
}

// childHammer works in several goroutines and says what was acknowledged, each
// in a line of its own, until it is killed.
func childHammer(dir string) error {
	s, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	say := func(what, id string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(what, id)
	}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("op-%d-%d", w, i)
				m, err := s.Admit(admission("ann", id))
				if err != nil {
					say("failed", err.Error())
					return
				}
				say("admitted", id)
				if rand.IntN(3) == 0 {
					continue // never sent
				}
				say("sending", id)
				m.Set()
				if rand.IntN(3) == 0 {
					continue // never answered
				}
				if err := s.Finish(ending("ann", id, protocol.StateApplied)); err != nil {
					say("failed", err.Error())
					return
				}
				say("finished", id)
			}
		})
	}
	wg.Wait()
	return nil
}
