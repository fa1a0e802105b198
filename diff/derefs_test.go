package diff_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestFieldsAreReadByValue: rooms that tell of a comparison never follow a pointer of its rows themselves, since a side may
// lack what the field is of. comparison.Value does.
func TestFieldsAreReadByValue(t *testing.T) {
	for _, dir := range []string{"internal/attribute/*.go", "render/*.go", "comparison/*.go", "../cmd/explain/internal/mcp/compare.go"} {
		files, err := filepath.Glob(dir)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", dir, err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				star, ok := n.(*ast.StarExpr)
				if !ok {
					return true
				}
				field, ok := star.X.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if root, ok := field.X.(*ast.Ident); ok && root.Obj == nil && imported(file, root.Name) {
					return true // a type of another package
				}
				t.Errorf("%s: *….%s is read without a test: use comparison.Value", set.Position(star.Pos()), field.Sel.Name)
				return true
			})
		}
	}
}

func imported(file *ast.File, name string) bool {
	for _, i := range file.Imports {
		if path := strings.Trim(i.Path.Value, `"`); i.Name != nil && i.Name.Name == name || path[strings.LastIndex(path, "/")+1:] == name {
			return true
		}
	}
	return false
}
