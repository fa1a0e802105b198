package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// mostMethods is how many methods a type may have, those of the types that it embeds counted: a type with more is a room
// that several tasks share, and splits into values.
const mostMethods = 20

// TestNoTypeHasManyMethods counts the methods of every product type, by value and by pointer, with those promoted from
// structs of this module that it embeds.
func TestNoTypeHasManyMethods(t *testing.T) {
	t.Parallel()
	methods, embedded := map[string]map[string]bool{}, map[string][]string{}
	for _, file := range trackedFiles(t) {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || isTestKit(filepath.Dir(file)) {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../..", file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		readTypes(filepath.Dir(file), tree, methods, embedded)
	}
	if len(methods) < 300 {
		t.Fatalf("found %d types with methods", len(methods))
	}
	for name := range methods {
		if count := len(promoted(name, methods, embedded, map[string]bool{})); count > mostMethods {
			t.Errorf("%s has %d methods, more than %d: split it into values with an owner each", name, count, mostMethods)
		}
	}
}

// isTestKit reports whether a folder, from the root of the repository, holds helpers of tests alone.
func isTestKit(dir string) bool {
	for part := range strings.SplitSeq(dir, "/") {
		if strings.HasSuffix(part, "test") || part == "fakeserver" || part == "browser" {
			return true
		}
	}
	return false
}

// readTypes adds what a file declares: methods by the type of their receiver, and the types that structs embed. A type is
// named FOLDER.NAME.
func readTypes(dir string, file *ast.File, methods map[string]map[string]bool, embedded map[string][]string) {
	imports := map[string]string{} // folder by the name in this file
	for _, spec := range file.Imports {
		if path, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module); ours {
			name := filepath.Base(path)
			if spec.Name != nil {
				name = spec.Name.Name
			}
			imports[name] = path
		}
	}
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil {
			name := typeName(dir, f.Recv.List[0].Type, imports)
			if methods[name] == nil {
				methods[name] = map[string]bool{}
			}
			methods[name][f.Name.Name] = true
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		body, isStruct := spec.Type.(*ast.StructType)
		if !isStruct {
			return true
		}
		for _, field := range body.Fields.List {
			if name := dir + "." + spec.Name.Name; len(field.Names) == 0 {
				embedded[name] = append(embedded[name], typeName(dir, field.Type, imports))
				if methods[name] == nil {
					methods[name] = map[string]bool{}
				}
			}
		}
		return true
	})
}

// typeName is FOLDER.NAME of a type of the module, without pointer and type parameters; empty for types of others.
func typeName(dir string, x ast.Expr, imports map[string]string) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return typeName(dir, x.X, imports)
	case *ast.IndexExpr:
		return typeName(dir, x.X, imports)
	case *ast.IndexListExpr:
		return typeName(dir, x.X, imports)
	case *ast.Ident:
		return dir + "." + x.Name
	case *ast.SelectorExpr:
		if from := imports[x.X.(*ast.Ident).Name]; from != "" {
			return from + "." + x.Sel.Name
		}
	}
	return ""
}

// promoted are the methods of a type and of all that it embeds.
func promoted(name string, methods map[string]map[string]bool, embedded map[string][]string, seen map[string]bool) map[string]bool {
	all := map[string]bool{}
	if seen[name] {
		return all
	}
	seen[name] = true
	for m := range methods[name] {
		all[m] = true
	}
	for _, inner := range embedded[name] {
		for m := range promoted(inner, methods, embedded, seen) {
			all[m] = true
		}
	}
	return all
}
