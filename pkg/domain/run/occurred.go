package run

import "time"

// normaliseTime reads an RFC 3339 time with any offset and 0 to 9 fractional digits, and
// gives it in UTC with Z and the digits that were sent. It reports false for everything
// else: a second 60, a day that the calendar does not have, and a year that the offset
// moves out of 0000 to 9999.
func normaliseTime(s string) (string, bool) {
	const head = len("2006-01-02T15:04:05")
	if len(s) <= head {
		return "", false
	}
	fraction := 0
	if s[head] == '.' {
		fraction = 1
		for head+fraction < len(s) && isDigit(s[head+fraction]) {
			fraction++
		}
		if fraction < 2 || fraction > 10 {
			return "", false
		}
	}
	offset, ok := parseOffset(s[head+fraction:])
	if !ok || !hasShape(s[:head], "dddd-dd-ddTdd:dd:dd") {
		return "", false
	}
	n := func(from, to int) int {
		v := 0
		for ; from < to; from++ {
			v = 10*v + int(s[from]-'0')
		}
		return v
	}
	year, month, day, hour, minute, second := n(0, 4), n(5, 7), n(8, 10), n(11, 13), n(14, 16), n(17, 19)
	local := time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC)
	// What the calendar or the clock does not have comes back as another time.
	if local.Year() != year || int(local.Month()) != month || local.Day() != day ||
		local.Hour() != hour || local.Minute() != minute || local.Second() != second {
		return "", false
	}
	utc := local.Add(-offset)
	if utc.Year() < 0 || utc.Year() > 9999 {
		return "", false
	}
	return utc.Format("2006-01-02T15:04:05") + s[head:head+fraction] + "Z", true
}

// parseOffset reads Z or ±hh:mm.
func parseOffset(s string) (time.Duration, bool) {
	if s == "Z" || s == "z" {
		return 0, true
	}
	if len(s) != len("+hh:mm") || s[0] != '+' && s[0] != '-' || !hasShape(s[1:], "dd:dd") {
		return 0, false
	}
	hours, minutes := int(s[1]-'0')*10+int(s[2]-'0'), int(s[4]-'0')*10+int(s[5]-'0')
	if hours > 23 || minutes > 59 {
		return 0, false
	}
	offset := time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
	if s[0] == '-' {
		offset = -offset
	}
	return offset, true
}

// hasShape compares s with a shape of its length: d is a digit, T also t, all else itself.
func hasShape(s, shape string) bool {
	for i := range len(shape) {
		switch c := s[i]; shape[i] {
		case 'd':
			if !isDigit(c) {
				return false
			}
		case 'T':
			if c != 'T' && c != 't' {
				return false
			}
		default:
			if c != shape[i] {
				return false
			}
		}
	}
	return true
}
