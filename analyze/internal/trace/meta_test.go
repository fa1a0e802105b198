package trace

import "testing"

func TestDriverVersion(t *testing.T) {
	for in, want := range map[string]string{
		"5452906": "545.29.06", "52512506": "525.125.06", "57013320": "570.133.20", "570.133.20": "570.133.20", "": "",
		"545290": "545290", "545290600": "545290600", "545x906": "545x906",
	} {
		if got := driverVersion(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}
