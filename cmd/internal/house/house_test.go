package house

import (
	"testing"
)

// TestHouse holds every rule for the whole tree.
func TestHouse(t *testing.T) {
	tree := loaded(t)
	for _, rule := range Rules() {
		t.Run(rule.Name, func(t *testing.T) {
			for _, f := range rule.Check(tree, Allowances) {
				t.Error(f)
			}
		})
	}
}

// TestAllowances holds I3.
func TestAllowances(t *testing.T) {
	for _, a := range Unneeded(loaded(t), Allowances) {
		t.Errorf("%s: the allowance of %q for %q is not needed, or has no reason: remove it", a.Path, a.Rule, a.Symbol)
	}
}

// TestLayersPointOneWay holds that no row of the layers lets a package import
// upwards, so that the folders have no cycle.
func TestLayersPointOneWay(t *testing.T) {
	above := map[string]bool{}
	for _, l := range layers {
		for _, name := range l.may {
			if !above[name] {
				t.Errorf("%s may import %s, which does not stand above it", l.name, name)
			}
		}
		if l.why == "" {
			t.Errorf("%s has no reason", l.name)
		}
		above[l.name] = true
	}
	for _, w := range append(walls, importers...) {
		if w.why == "" {
			t.Errorf("the wall of %s has no reason", w.library)
		}
	}
}

func loaded(t *testing.T) *Tree {
	t.Helper()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	tree, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.Files) < 20 {
		t.Fatalf("only %d files were found: the check would be void", len(tree.Files))
	}
	return tree
}
