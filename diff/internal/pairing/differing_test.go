package pairing

import "testing"

// What is said to differ is the option, and the hash of everything only where no option does.
func TestDiffering(t *testing.T) {
	for _, c := range [][4]string{
		{"chat; 40 requests; fingerprint 0a", "chat; 9 requests; fingerprint 0b", "40 requests", "9 requests"},
		{"chat; 40 requests; fingerprint 0a", "chat; 40 requests; fingerprint 0b", "fingerprint 0a", "fingerprint 0b"},
		{"chat; rate 4/s; 40 requests", "chat; rate 8/s; 9 requests", "rate 4/s; 40 requests", "rate 8/s; 9 requests"},
		{"0a", "chat; fingerprint 0b", "0a", "chat; fingerprint 0b"},
		{"H100", "H200", "H100", "H200"},
	} {
		if a, b := differing(c[0], c[1]); a != c[2] || b != c[3] {
			t.Errorf("%s | %s: %s | %s", c[0], c[1], a, b)
		}
	}
}
