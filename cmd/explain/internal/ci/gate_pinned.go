package ci

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/nsys-llm/explain/cmd/explain/internal/rulesfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/diffdoc"
	"github.com/nsys-llm/explain/diff/policy"
	"github.com/nsys-llm/explain/gate"
)

// pinned reads the file of a flag, which is called as what it holds. If the base cannot be read, nothing is judged; any
// other error is one of usage.
func pinned(ctx context.Context, pins *gate.Pins, what, path string) (*gate.Pinned, error) {
	file, err := pins.Read(ctx, what, path)
	if err != nil && !errors.As(err, new(gate.UnreadError)) {
		err = usage.Errorf("--%s: %w", strings.ReplaceAll(what, " ", "-"), err)
	}
	return file, err
}

// readPolicy reads the policy file. Without --policy, or if the base has no file yet, it returns the default rules.
func (f *gateFlags) readPolicy(ctx context.Context) (p *policy.Policy, source string, err error) {
	if f.rules.Policy == "" {
		source = diffdoc.DefaultRules
		if len(f.rules.FailOn) > 0 {
			source = diffdoc.FlagRules
		}
		return policy.Default(), source, nil
	}
	file, err := pinned(ctx, &f.pins, "policy", f.rules.Policy)
	preset, named := policy.PresetText(f.rules.Policy)
	switch {
	case errors.As(err, new(gate.UnreadError)):
		return nil, "", err
	case named && (err != nil || !file.There()): // no file of this name is there, nor at the base
		p, err = rulesfile.PolicyText(f.rules.Policy, []byte(preset), nil)
		return p, "preset " + f.rules.Policy, err
	case err != nil:
		return nil, "", err
	case !file.There():
		return policy.Default(), diffdoc.DefaultRules, nil
	}
	source = file.Name
	if file.Ref != "" {
		source += " at " + gate.ShortRef(file.Ref)
	}
	p, err = rulesfile.PolicyText(source, file.Data, func(name string) ([]byte, error) {
		more, err := f.pins.Read(ctx, "policy", filepath.Join(filepath.Dir(f.rules.Policy), filepath.FromSlash(name)))
		if err == nil && !more.There() {
			err = fmt.Errorf("the base %s has no file %s", gate.ShortRef(more.Ref), more.Name)
		}
		if err != nil {
			return nil, err
		}
		return more.Data, nil
	})
	if unread := (gate.UnreadError{}); errors.As(err, &unread) {
		err = unread
	}
	return p, source, err
}

// readNoise reads the noise floors; nil if there are none, or if the base has no file yet.
func (f *gateFlags) readNoise(ctx context.Context) (*diff.Noise, error) {
	if f.rules.Noise == "" {
		return nil, nil
	}
	file, err := pinned(ctx, &f.pins, "noise", f.rules.Noise)
	if err != nil || !file.There() {
		return nil, err
	}
	return rulesfile.NoiseText(file.Name, file.Data)
}

// pinMaps makes the analysis use the base's phase map and kernel map.
func (f *gateFlags) pinMaps(ctx context.Context, dir string) error {
	for _, m := range []struct {
		what string
		path *string
	}{{"phase map", &f.analysis.PhaseMap}, {"kernel map", &f.analysis.KernelMap}} {
		if *m.path == "" {
			continue
		}
		file, err := pinned(ctx, &f.pins, m.what, *m.path)
		if err != nil {
			return err
		}
		if *m.path, err = file.File(dir); err != nil {
			return err
		}
	}
	return nil
}
