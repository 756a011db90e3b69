package inspect

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/airlock-ecs/airlock/handles"
)

// field is a leaf of a component's value, as text.
type field struct{ Name, Value string }

const (
	mostLeaves = 128
	mostDepth  = 8
	mostText   = 256
	mostBytes  = 1024 // of an array that may be a text
)

// fieldsOf writes a value down, leaf by leaf. No method of a stranger's is called, and no pointer followed: what it points to may
// change meanwhile. Of a value with many leaves the first are written, and that there are more.
func fieldsOf(v reflect.Value) []field {
	all := appendLeaves([]field{}, "", v, 0)
	if len(all) > mostLeaves {
		all[mostLeaves] = field{"…", fmt.Sprintf("only the first %d are shown", mostLeaves)}
	}
	return all
}

// appendLeaves appends the leaves of v, until there is one more than are shown.
func appendLeaves(all []field, name string, v reflect.Value, depth int) []field {
	if len(all) > mostLeaves {
		return all
	}
	text, ok := leaf(v)
	if ok || depth == mostDepth {
		return append(all, field{name, text})
	}
	// Each of them has a leaf at least: of a large array no more are walked than are shown.
	if v.Kind() == reflect.Struct {
		for i := range min(v.NumField(), mostLeaves+1-len(all)) {
			all = appendLeaves(all, join(name, "."+v.Type().Field(i).Name), v.Field(i), depth+1)
		}
		return all
	}
	for i := range min(v.Len(), mostLeaves+1-len(all)) { // an array
		all = appendLeaves(all, join(name, "["+strconv.Itoa(i)+"]"), v.Index(i), depth+1)
	}
	return all
}

func join(name, next string) string { return strings.TrimPrefix(name+next, ".") }

// leaf writes a value that is not taken apart.
func leaf(v reflect.Value) (text string, ok bool) {
	switch t := v.Type(); t {
	case reflect.TypeFor[handles.Local]():
		return handles.Local(v.Uint()).String(), true
	case reflect.TypeFor[handles.Global]():
		return handles.Global(v.Uint()).String(), true
	case reflect.TypeFor[handles.Net]():
		return handles.Net(v.Uint()).String(), true
	}
	switch v.Kind() {
	case reflect.Bool:
		return strconv.FormatBool(v.Bool()), true
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10), true
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return strconv.FormatUint(v.Uint(), 10), true
	case reflect.Float32:
		return strconv.FormatFloat(v.Float(), 'g', -1, 32), true
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64), true
	case reflect.Complex64, reflect.Complex128:
		return fmt.Sprint(v.Complex()), true
	case reflect.String:
		return strconv.Quote(shortened(v.String())), true
	case reflect.Slice:
		if v.IsNil() {
			return v.Type().String() + ", nil", true
		}
		return fmt.Sprintf("%s, %d long", v.Type(), v.Len()), true
	case reflect.Array:
		return textOf(v)
	case reflect.Struct:
		return "{…}", v.NumField() == 0
	}
	if v.IsNil() { // a pointer, a function, an interface; also a map or a channel, whose length is behind a pointer
		return v.Type().String() + ", nil", true
	}
	return v.Type().String(), true
}

// textOf is an array of bytes that holds a text with zeros behind it. Of a long one the beginning is looked at.
func textOf(v reflect.Value) (string, bool) {
	if v.Type().Elem().Kind() != reflect.Uint8 {
		return "[…]", v.Len() == 0
	}
	b, rest := make([]byte, min(v.Len(), mostBytes)), ""
	for i := range b {
		b[i] = byte(v.Index(i).Uint())
	}
	text := string(b)
	if len(b) < v.Len() {
		rest = fmt.Sprintf(", of %d bytes", v.Len())
		text = string(wholeRunes(b))
	}
	text = strings.TrimRight(text, "\x00")
	switch {
	case utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }):
		return strconv.Quote(shortened(text)) + rest, true
	case len(b) > mostText:
		return fmt.Sprintf("%x…", b[:mostText]) + rest, true
	default:
		return fmt.Sprintf("%x", b), true
	}
}

// wholeRunes leaves away the beginning of a rune at the end of b.
func wholeRunes(b []byte) []byte {
	for n := 1; n < min(utf8.UTFMax, len(b)+1); n++ {
		if last := b[len(b)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return b[:len(b)-n]
			}
			break
		}
	}
	return b
}

func shortened(s string) string {
	if len(s) <= mostText {
		return s
	}
	return strings.ToValidUTF8(s[:mostText], "") + "…"
}
