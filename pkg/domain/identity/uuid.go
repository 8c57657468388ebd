package identity

// UUID is an RFC 4122 identifier in its one stored form: 36 lower-case
// characters, version 1 to 5, variant 8 to b.
type UUID string

// ParseUUID reads a UUID in any case and returns its lower-case form.
// It reports false for every other shape, version or variant.
func ParseUUID(s string) (UUID, bool) {
	if len(s) != 36 {
		return "", false
	}
	var b [36]byte
	for i := range len(s) {
		c := s[i]
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return "", false
			}
		default:
			switch {
			case '0' <= c && c <= '9', 'a' <= c && c <= 'f':
			case 'A' <= c && c <= 'F':
				c += 'a' - 'A'
			default:
				return "", false
			}
		}
		b[i] = c
	}
	if b[14] < '1' || b[14] > '5' {
		return "", false
	}
	if v := b[19]; v != '8' && v != '9' && v != 'a' && v != 'b' {
		return "", false
	}
	return UUID(b[:]), true
}
