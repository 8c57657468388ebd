// Package timestamp gives a moment that was sent as text its one stored
// spelling, without losing a digit of it.
package timestamp

import "time"

// maxDigits is how many fractional digits of a second a moment may have.
const maxDigits = 9

const (
	layout     = "2006-01-02T15:04:05"
	fractionAt = len(layout)
)

// Normalize returns the moment s names in UTC: RFC 3339 with T and Z in upper
// case, and the fractional digits (none to nine) exactly as they were sent,
// trailing zeros too. It reports false when s is not RFC 3339 with any offset,
// has a second 60, or names a moment outside the years 0001 to 9999 of UTC.
// What it returns normalizes to itself, without an allocation.
func Normalize(s string) (string, bool) {
	at, end, ok := parse(s)
	if !ok {
		return "", false
	}
	if year := at.Year(); year < 1 || year > 9999 {
		return "", false
	}
	if s[end:] == "Z" && s[len("2006-01-02")] == 'T' {
		return s, true
	}
	b := make([]byte, 0, end+1)
	b = at.AppendFormat(b, layout)
	b = append(b, s[fractionAt:end]...)
	return string(append(b, 'Z')), true
}

// parse reads s to the second, in UTC, and says where its offset begins.
// Only what RFC 3339 (section 5.6) allows is read: time.Parse also takes a
// comma, one digit for an hour and any number of fractional digits.
func parse(s string) (at time.Time, end int, ok bool) {
	if len(s) <= fractionAt ||
		s[4] != '-' || s[7] != '-' || s[10] != 'T' && s[10] != 't' || s[13] != ':' || s[16] != ':' {
		return time.Time{}, 0, false
	}
	year := 100*number(s[0:]) + number(s[2:])
	month, day := number(s[5:]), number(s[8:])
	hour, minute, second := number(s[11:]), number(s[14:]), number(s[17:])
	if number(s[0:]) < 0 || number(s[2:]) < 0 || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) ||
		hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59 {
		return time.Time{}, 0, false
	}
	end = fractionAt
	if s[end] == '.' {
		for end++; end < len(s) && '0' <= s[end] && s[end] <= '9'; end++ {
		}
		if digits := end - fractionAt - 1; digits < 1 || digits > maxDigits {
			return time.Time{}, 0, false
		}
	}
	east, ok := offset(s[end:])
	return time.Date(year, time.Month(month), day, hour, minute-east, second, 0, time.UTC), end, ok
}

// offset returns the minutes that s, Z or ±hh:mm, is ahead of UTC.
func offset(s string) (minutes int, ok bool) {
	if s == "Z" || s == "z" {
		return 0, true
	}
	if len(s) != len("+00:00") || s[0] != '+' && s[0] != '-' || s[3] != ':' {
		return 0, false
	}
	h, m := number(s[1:]), number(s[4:])
	if h < 0 || h > 23 || m < 0 || m > 59 {
		return 0, false
	}
	if s[0] == '-' {
		return -60*h - m, true
	}
	return 60*h + m, true
}

// number returns the two decimal digits s begins with, or -1.
func number(s string) int {
	tens, ones := s[0]-'0', s[1]-'0' // below '0' wraps round to above 9
	if tens > 9 || ones > 9 {
		return -1
	}
	return 10*int(tens) + int(ones)
}

func daysIn(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	default:
		return 31
	}
}
