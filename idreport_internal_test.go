package jay

import (
	"reflect"
	"testing"

	"github.com/jaydb/jay/internal/inspect"
)

// Ensure that the public report has each field of the one of package inspect. The names are
// internal: no database has a value in each of them.
func TestIDReport_HasAllFields(t *testing.T) {
	var r inspect.Report
	fillFields(reflect.ValueOf(&r).Elem())
	sameFields(t, "report", reflect.ValueOf(r), reflect.ValueOf(idReport(&r)))
}

// fillFields gives each field of v a value that is not zero.
func fillFields(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fillFields(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillFields(v.Index(0))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillFields(v.Elem())
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint64:
		v.SetUint(7)
	case reflect.Float64:
		v.SetFloat(7)
	default:
		v.SetInt(7)
	}
}

// sameFields compares what two structs hold, by the positions of their fields.
func sameFields(t *testing.T, path string, a, b reflect.Value) {
	t.Helper()
	if a.Kind() != b.Kind() {
		t.Fatalf("%s: %s and %s", path, a.Type(), b.Type())
	}
	switch a.Kind() {
	case reflect.Struct:
		if a.NumField() != b.NumField() {
			t.Fatalf("%s: %s has %d fields, %s has %d", path, a.Type(), a.NumField(), b.Type(), b.NumField())
		}
		for i := range a.NumField() {
			sameFields(t, path+"."+b.Type().Field(i).Name, a.Field(i), b.Field(i))
		}
	case reflect.Slice:
		if a.Len() != b.Len() {
			t.Fatalf("%s: %d and %d elements", path, a.Len(), b.Len())
		}
		for i := range a.Len() {
			sameFields(t, path, a.Index(i), b.Index(i))
		}
	case reflect.Pointer:
		sameFields(t, path, a.Elem(), b.Elem())
	default:
		if !a.Equal(b.Convert(a.Type())) {
			t.Errorf("%s: got %v, want %v", path, b, a)
		}
	}
}
