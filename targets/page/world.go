package page

import (
	"embed"
	"strings"
)

//go:embed js/*.js
var worldFiles embed.FS

// worldParts is the order of the parts; each uses what stands before it.
var worldParts = []string{
	"base", "roles", "nodes", "secrets", "states", "walk", "find", "aim", "watch", "edit", "rest", "api",
}

// worldScript is what runs in the isolated world "reins" of every frame before
// the page's own scripts. The page sees nothing of it, and running it twice in
// one document changes nothing.
var worldScript = func() string {
	var b strings.Builder
	b.WriteString("(() => {\n'use strict';\nif (globalThis.__reins && globalThis.__reins.document === document) return;\n")
	for _, name := range worldParts {
		part, err := worldFiles.ReadFile("js/" + name + ".js")
		if err != nil {
			panic("page: part of the world missing from the binary: " + name)
		}
		b.Write(part)
	}
	b.WriteString("})();\n")
	return b.String()
}()
