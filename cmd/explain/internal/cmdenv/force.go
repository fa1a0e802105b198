package cmdenv

import "github.com/spf13/pflag"

// Force adds the flag that lets a command replace what it did not write.
func Force(fl *pflag.FlagSet, force *bool) {
	fl.BoolVar(force, "force", false, "replace a file that is there and that explain did not write")
}
