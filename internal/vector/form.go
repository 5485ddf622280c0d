package vector

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Form is how documents have the numbers of a vector. The forms besides Singles are those of RavenDB's clients.
type Form uint8

const (
	Singles Form = iota // float32: see Read
	Int8                // a signed byte for each number, and behind them a float32, little-endian: the greatest absolute number, of which a byte is a 127th part
	Bits                // a bit for each number, the first one in the highest bit of the first byte: a bit that is set is 1, another -1
	Signs               // float32, of which the signs are compared: 0 is a positive number
)

var formNames = [...]string{Singles: "f32", Int8: "i8", Bits: "i1", Signs: "f32_i1"}

// String returns the name that RavenDB's queries have for the form, such as "i8".
func (f Form) String() string { return formNames[f] }

// IsOfBits reports whether vectors of the form are compared by Hamming.
func (f Form) IsOfBits() bool { return f == Bits || f == Signs }

// IsPacked reports whether the numbers are in bytes, and not float32.
func (f Form) IsPacked() bool { return f == Int8 || f == Bits }

// bytesBehind is how many bytes are behind those of the numbers of an Int8.
const bytesBehind = 4

// Read is the function Read for vectors of the form.
func (f Form) Read(dst []float32, raw []byte) ([]float32, error) {
	if !f.IsPacked() {
		return Read(dst, raw)
	}
	packed, err := f.ReadPacked(raw)
	if err != nil {
		return dst, err
	}
	return f.Unpack(dst, packed), nil
}

// ReadPacked returns the bytes of a packed vector: of an array of whole numbers, of a text in base64, or of an object with "@vector". Errors are *Error.
func (f Form) ReadPacked(raw []byte) (packed []byte, err error) {
	most, least := MaxDimensions/8, 1
	if f == Int8 {
		most, least = MaxDimensions+bytesBehind, bytesBehind+1
	}
	if len(raw) > 0 && raw[0] == '{' {
		if raw, err = arrayIn(raw); err != nil {
			return nil, err
		}
	}
	switch {
	case len(raw) > 0 && raw[0] == '[':
		packed, err = readBytes(raw, most)
	case len(raw) > 0 && raw[0] == '"':
		text := bytes.TrimRight(raw[1:len(raw)-1], "=")
		if base64.RawStdEncoding.DecodedLen(len(text)) > most {
			return nil, tooMany(f.numbers(base64.RawStdEncoding.DecodedLen(len(text))))
		}
		if packed, err = base64.RawStdEncoding.AppendDecode(nil, text); err != nil {
			err = &Error{"a vector in base64 has letters, digits, + and /", shorten(raw)}
		}
	default:
		err = &Error{"a vector of " + f.String() + " is an array of bytes, or its base64", shorten(raw)}
	}
	switch {
	case err != nil:
		return nil, err
	case len(packed) > most:
		return nil, tooMany(f.numbers(len(packed)))
	case len(packed) < least:
		return nil, &Error{"a vector has at least one number", shorten(raw)}
	}
	if f == Int8 {
		if greatest := greatestOf(packed); greatest < 0 || !isFinite(float64(greatest)) {
			return nil, &Error{"a vector of i8 ends with four bytes, its greatest number as float32", fmt.Sprintf("they are %v", greatest)}
		}
	}
	return packed, nil
}

// numbers returns how many numbers there are in so many bytes.
func (f Form) numbers(bytes int) int {
	if f == Bits {
		return 8 * bytes
	}
	return bytes - bytesBehind
}

// readBytes reads a JSON array of at most so many whole numbers, signed or not, and one more.
func readBytes(raw []byte, most int) (dst []byte, err error) {
	rest := raw[1 : len(raw)-1]
	for len(rest) > 0 && len(dst) <= most {
		end := bytes.IndexByte(rest, ',')
		if end < 0 {
			end = len(rest)
		}
		n, err := strconv.Atoi(string(rest[:end]))
		if err != nil || n < -128 || n > 255 {
			return nil, &Error{"a vector of bytes has whole numbers from -128 to 127, or from 0 to 255", fmt.Sprintf("number %d is %s", len(dst)+1, shorten(rest[:end]))}
		}
		dst = append(dst, byte(n))
		rest = rest[min(end+1, len(rest)):]
	}
	return dst, nil
}

// greatestOf returns what the last bytes of an Int8 are.
func greatestOf(packed []byte) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(packed[len(packed)-bytesBehind:]))
}

// Unpack appends the numbers of a packed vector to dst.
func (f Form) Unpack(dst []float32, packed []byte) []float32 {
	dst = slices.Grow(dst, f.numbers(len(packed)))
	if f == Bits {
		for _, b := range packed {
			for bit := 7; bit >= 0; bit-- {
				dst = append(dst, float32(int(b>>bit&1)*2-1))
			}
		}
		return dst
	}
	part := float64(greatestOf(packed)) / 127
	for _, b := range packed[:len(packed)-bytesBehind] {
		dst = append(dst, float32(float64(int8(b))*part))
	}
	return dst
}

// Pack returns a vector, of which Check returns nil, in a packed form. Bits whose number is no multiple of 8 are followed by bits that are not set.
func (f Form) Pack(v []float32) []byte {
	if f == Bits {
		packed := make([]byte, (len(v)+7)/8)
		for i, n := range v {
			if n >= 0 {
				packed[i/8] |= 0x80 >> (i % 8)
			}
		}
		return packed
	}
	greatest := float32(0)
	for _, n := range v {
		greatest = max(greatest, float32(math.Abs(float64(n))))
	}
	packed := make([]byte, 0, len(v)+bytesBehind)
	for _, n := range v {
		scaled := int8(0)
		if greatest > 0 {
			scaled = int8(math.RoundToEven(float64(n) * 127 / float64(greatest)))
		}
		packed = append(packed, byte(scaled))
	}
	return binary.LittleEndian.AppendUint32(packed, math.Float32bits(greatest))
}
