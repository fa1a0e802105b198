package render_test

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"testing"
)

type vec [3]float64

func mul(m [3]vec, v vec) (out vec) {
	for i := range m {
		out[i] = m[i][0]*v[0] + m[i][1]*v[1] + m[i][2]*v[2]
	}
	return out
}

// oklab is a colour where distances are about as large as they look (Ottosson 2020), of linear sRGB.
func oklab(rgb vec) vec {
	lms := mul([3]vec{{0.4122214708, 0.5363325363, 0.0514459929}, {0.2119034982, 0.6806995451, 0.1073969566},
		{0.0883024619, 0.2817188376, 0.6299787005}}, rgb)
	for i := range lms {
		lms[i] = math.Cbrt(max(lms[i], 0))
	}
	return mul([3]vec{{0.2104542553, 0.7936177850, -0.0040720468}, {1.9779984951, -2.4285922050, 0.4505937099},
		{0.0259040371, 0.7827717662, -0.8086757660}}, lms)
}

// TestColoursAreToldApart: any two colours that stand for a category, a class or a cause differ by more than twice what
// an eye can just tell (0.02 in OKLab), also to eyes that lack red or green (Machado, Oliveira and Fernandes 2009).
func TestColoursAreToldApart(t *testing.T) {
	eyes := map[string][3]vec{
		"full colour": {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
		"protanopia":  {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
		"deuteranopia": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413},
			{-0.011820, 0.042940, 0.968881}},
	}
	css, err := os.ReadFile("page/page.css")
	if err != nil {
		t.Fatal(err)
	}
	colours := map[string]vec{}
	for _, m := range regexp.MustCompile(`\.k-(\w+)\{fill:#(\w{6})\}`).FindAllStringSubmatch(string(css), -1) {
		n, err := strconv.ParseUint(m[2], 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		var v vec
		for i, shift := range []int{16, 8, 0} {
			c := float64(n>>shift&255) / 255
			if c <= 0.04045 {
				v[i] = c / 12.92
			} else {
				v[i] = math.Pow((c+0.055)/1.055, 2.4)
			}
		}
		colours[m[1]] = v
	}
	if len(colours) != 26 {
		t.Fatalf("%d colours in the style sheet, want 26", len(colours))
	}
	for eye, m := range eyes {
		for a, x := range colours {
			for b, y := range colours {
				if a >= b {
					continue
				}
				p, q := oklab(mul(m, x)), oklab(mul(m, y))
				if d := math.Hypot(math.Hypot(p[0]-q[0], p[1]-q[1]), p[2]-q[2]); d < 0.05 {
					t.Errorf("%s: %s and %s are only %.3f apart", eye, a, b, d)
				}
			}
		}
	}
}
