package diff_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// numbers of rows that a side may lack.
var numbersOfRows = []string{"Base", "Head", "Delta", "Ratio", "BaseCount", "HeadCount", "BaseTime", "HeadTime", "Low", "High", "Share"}

// TestFieldsAreReadByValue: no room follows a pointer to a number of a row itself, since a side may lack it, and rooms that
// tell of a comparison follow none at all. comparison.Value does.
func TestFieldsAreReadByValue(t *testing.T) {
	tells := map[string]bool{"internal/breakdown/*.go": true, "diffdoc/*.go": true, "comparison/*.go": true}
	for _, dir := range []string{"*.go", "internal/breakdown/*.go", "internal/rules/*.go", "internal/pairing/*.go", "internal/noise/*.go", "internal/side/*.go", "diffdoc/*.go", "comparison/*.go", "sequential/*.go", "../gate/*.go", "../cmd/explain/internal/mcp/*.go"} {
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
				if !tells[dir] && !slices.Contains(numbersOfRows, field.Sel.Name) {
					return true
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
