package house

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Module is the path of this module.
const Module = "reins"

// Tree is the source of the module, parsed but not type-checked: a check of the
// tree must work while parts of it do not compile.
type Tree struct {
	Fset *token.FileSet
	// Files are the Go files, in the order of their paths.
	Files []*File
	// Texts are the other files that people write, by path from the root.
	Texts map[string][]byte
	// Folders are the folders at the top, those that git ignores left out.
	Folders []string
}

// File is one Go file.
type File struct {
	Path   string // from the root, with slashes
	Source []byte
	// AST is what could be parsed; Err says why not all of it.
	AST *ast.File
	Err error
}

// Test reports whether the file belongs to tests only.
func (f *File) Test() bool { return strings.HasSuffix(f.Path, "_test.go") }

// Package is the path of the file's package from the root, empty at the root.
func (f *File) Package() string {
	if dir := path.Dir(f.Path); dir != "." {
		return dir
	}
	return ""
}

// Main reports whether the file is part of a program's main package.
func (f *File) Main() bool { return f.AST.Name.Name == "main" }

// Root finds the folder of go.mod, from the current one upwards.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the root of the module: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("find the root of the module: no go.mod here or above; run it inside the module")
		}
		dir = up
	}
}

// Load reads the tree below root. Folders named testdata or with a dot, and
// what .gitignore names at the top, are left out.
func Load(root string) (*Tree, error) {
	t := NewTree()
	ignored := ignoredFolders(root)
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // gone since its folder was listed
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if d.IsDir() {
			switch {
			case name == ".":
				return nil
			case strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || slices.Contains(ignored, name):
				return fs.SkipDir
			case !strings.Contains(name, "/"):
				t.Folders = append(t.Folders, name)
			}
			return nil
		}
		if !isText(d.Name()) {
			return nil
		}
		source, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		t.Add(name, source)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the source tree: %w", err)
	}
	return t, nil
}

// NewTree returns an empty tree, for [Tree.Add].
func NewTree() *Tree {
	return &Tree{Fset: token.NewFileSet(), Texts: map[string][]byte{}}
}

// Add puts one file into the tree.
func (t *Tree) Add(name string, source []byte) {
	if !strings.HasSuffix(name, ".go") {
		t.Texts[name] = source
		return
	}
	file, err := parser.ParseFile(t.Fset, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if file == nil {
		file = &ast.File{Name: ast.NewIdent("")}
	}
	t.Files = append(t.Files, &File{Path: name, Source: source, AST: file, Err: err})
}

// Packages groups the files by package.
func (t *Tree) Packages() map[string][]*File {
	packages := map[string][]*File{}
	for _, f := range t.Files {
		packages[f.Package()] = append(packages[f.Package()], f)
	}
	return packages
}

func isText(name string) bool {
	switch filepath.Ext(name) {
	case ".go", ".md", ".js", ".ts", ".css", ".html", ".sh", ".py", ".mod":
		return true
	}
	return name == "Makefile" || name == "LICENSE" || name == "NOTICE"
}

// ignoredFolders are the lines /name/ of .gitignore.
func ignoredFolders(root string) []string {
	source, err := os.ReadFile(filepath.Join(root, ".gitignore"))
	if err != nil {
		return nil
	}
	var names []string
	for line := range strings.Lines(string(source)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "/") && strings.HasSuffix(line, "/") {
			names = append(names, strings.Trim(line, "/"))
		}
	}
	return names
}
