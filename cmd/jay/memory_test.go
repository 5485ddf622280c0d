package main

import "testing"

// Ensure that sizes are read with units of 1,000 and of 1,024, and that anything else is refused.
func TestByteSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"0": 0, "33554432": 32 << 20, "256MiB": 256 << 20, "256mib": 256 << 20, "1GB": 1e9, "1 GiB": 1 << 30, "5B": 5, "7kB": 7000, "7KiB": 7 << 10, "2TiB": 2 << 40, "3TB": 3e12,
		"-1": -1, "": -1, "MiB": -1, "1.5GiB": -1, "256M": -1, "1GiBs": -1, "9223372036854775807": 1<<63 - 1, "9223372036854775808": -1, "9007199254740992KiB": -1, "GiB1": -1, "1e3": -1,
	} {
		var got byteSize
		err := got.UnmarshalText([]byte(text))
		if want < 0 && err == nil || want >= 0 && (err != nil || int64(got) != want) {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
}
