package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
)

// Complete gives lists and maps that JSON would write as null an empty one, in all that v points to.
func Complete(v any) {
	_ = walk(reflect.ValueOf(v).Elem(), func(v reflect.Value) error {
		switch {
		case v.Kind() == reflect.Slice && v.IsNil():
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		case v.Kind() == reflect.Map && v.IsNil():
			v.Set(reflect.MakeMap(v.Type()))
		}
		return nil
	})
}

// word is a type of some constants.
type word interface{ Valid() bool }

// Sound reports the first thing in all that v points to which JSON cannot hold or a reader of it would stumble over: a
// list or map that is null, a number that is not finite, a word that is not one of its type's.
func Sound(v any) error {
	err := walk(reflect.ValueOf(v).Elem(), func(v reflect.Value) error {
		switch v.Kind() {
		case reflect.Slice, reflect.Map:
			if v.IsNil() {
				return errors.New(" is null")
			}
		case reflect.Float64:
			if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
				return errors.New(" is not a finite number")
			}
		case reflect.String:
			if w, ok := v.Interface().(word); ok && !w.Valid() {
				return fmt.Errorf(" is %q", v.String())
			}
		}
		return nil
	})
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "."))
	}
	return nil
}

// field is one of a struct that JSON writes, or of a struct that is embedded in it.
type field struct {
	at        []int
	name      string
	omitEmpty bool
	lines     bool // see [WriteLines]
}

var fieldsOf sync.Map // of each type of struct, a []field

func fields(t reflect.Type) []field {
	if list, ok := fieldsOf.Load(t); ok {
		return list.([]field)
	}
	var list []field
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && !f.Anonymous && name != "-" {
			list = append(list, field{f.Index, name, strings.Contains(options, "omit"), f.Tag.Get("lines") != ""})
		}
	}
	fieldsOf.Store(t, list)
	return list
}

// walk visits what JSON writes of v, and puts the place into an error's text. Of what writes itself it visits no parts.
func walk(v reflect.Value, visit func(reflect.Value) error) error {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return walk(v.Elem(), visit)
	case reflect.Struct:
		for _, f := range fields(v.Type()) {
			in := v.FieldByIndex(f.at)
			if f.omitEmpty && in.IsZero() {
				continue
			}
			if err := walk(in, visit); err != nil {
				return fmt.Errorf(".%s%w", f.name, err)
			}
		}
		return nil
	}
	if err := visit(v); err != nil {
		return err
	}
	if v.Kind() != reflect.Slice || !composed(v.Type().Elem()) || v.Type().Implements(writesItself) {
		return nil
	}
	for i := range v.Len() {
		if err := walk(v.Index(i), visit); err != nil {
			return fmt.Errorf("[%d]%w", i, err)
		}
	}
	return nil
}

var writesItself = reflect.TypeFor[json.Marshaler]()

// composed reports whether there is something to visit in an element of a list.
func composed(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer:
		return composed(t.Elem())
	case reflect.Struct:
		return len(fields(t)) > 0
	}
	return t.Kind() == reflect.Slice || t.Kind() == reflect.Map || t.Kind() == reflect.Float64
}
