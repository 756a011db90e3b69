package snapshot

import (
	"encoding/binary"
	"iter"
	"math/bits"
	"reflect"
)

func appendUint64(b []byte, v uint64) []byte { return binary.LittleEndian.AppendUint64(b, v) }

// runsOf yields the runs of bits that are set: the first one, and the one after the last.
func runsOf(words []uint64) iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		for at := 0; at < 64*len(words); {
			from := nextBit(words, at, 0)
			if at = nextBit(words, from, ^uint64(0)); from < at && !yield(from, at) {
				return
			}
		}
	}
}

// nextBit is the first bit from at on that is set, or is not if flip is all ones; one past the last bit if there
// is none.
func nextBit(words []uint64, at int, flip uint64) int {
	for w := at >> 6; w < len(words); w++ {
		word := words[w] ^ flip
		if w == at>>6 {
			word &= ^uint64(0) << (at & 63)
		}
		if word != 0 {
			return w<<6 + bits.TrailingZeros64(word)
		}
	}
	return 64 * len(words)
}

// appendBools appends where the truths of a type are in its canonical bytes: anything but 0 and 1 there would be a
// value that no program can make.
func appendBools(at []int, t reflect.Type, offset int) []int {
	switch t.Kind() {
	case reflect.Bool:
		return append(at, offset)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			at = appendBools(at, f.Type, offset)
			offset += canonicalSize(f.Type)
		}
	case reflect.Array:
		size := canonicalSize(t.Elem())
		for i := range t.Len() {
			before := len(at)
			if at = appendBools(at, t.Elem(), offset+i*size); len(at) == before {
				return at // none in any element
			}
		}
	}
	return at
}
