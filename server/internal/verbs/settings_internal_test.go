package verbs

import (
	"testing"
	"time"
)

// Ensure that durations are read and written as .NET does.
func TestTimeSpan(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"00:00:00": 0, "14.00:00:00": 14 * 24 * time.Hour, "01:02:03": time.Hour + 2*time.Minute + 3*time.Second, "00:00:00.5000000": time.Second / 2, "1.23:59:59.0000001": 48*time.Hour - time.Second + 100,
	} {
		got, err := parseTimeSpan(text)
		if err != nil || got != want || formatTimeSpan(want) != text {
			t.Errorf("%s: got %v, %v, written as %s", text, got, err, formatTimeSpan(want))
		}
	}
	for _, text := range []string{"", "1", "1:2", "a:b:c", "00:60:00", "00:00:60", "-1.00:00:00", "99999999.00:00:00", "00:00:00.12345678", "1.2.3:00:00"} {
		if got, err := parseTimeSpan(text); err == nil {
			t.Errorf("%s: got %v, want an error", text, got)
		}
	}
}
