// Command docgen writes the documents that are taken from the source:
// docs/protocol.md from the types, methods, reason codes and limits of package
// protocol, and docs/invariants.md from the doc.go of every package. Run it with
//
//	go run ./cmd/internal/house/docgen
//
// Its test fails when a document is older than the source.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"reins/cmd/internal/house"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "docgen:", err)
		os.Exit(1)
	}
}

func run() error {
	root, err := house.Root()
	if err != nil {
		return err
	}
	tree, err := house.Load(root)
	if err != nil {
		return err
	}
	for name, write := range documents {
		text, err := write(tree)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("write the document: %w", err)
		}
	}
	return nil
}

// documents are the generated files and what writes each.
var documents = map[string]func(*house.Tree) (string, error){
	"docs/protocol.md":   protocolDocument,
	"docs/invariants.md": invariantsDocument,
}

const generated = "<!-- Written by `go run ./cmd/internal/house/docgen`: change the source, not this file. -->\n\n"
