package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/diff"
)

// evidencePage is the name of the page about evidence.
const evidencePage = "evidence"

func newDoc(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "doc [SECTION|FINDING]",
		Short: "Print what a section of the report means and how it is computed",
		Long: "doc prints the page of a section: definitions, metrics, tables, limits, and what to do about its findings.\n" +
			"The id of a finding prints the page of its section.\n" +
			"It also prints the pages on how diff tells a change from noise, and on its policy: " +
			strings.Join(diff.Pages(), ", ") + ";\n" +
			"and on the files that are read beside a trace: " + evidencePage + ".",
		Example: "  explain doc            the list of sections\n  explain doc idle       one of them\n  explain doc gpu_idle   the page that explains a finding",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("one page at a time")
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var ids []string
			for _, s := range analyze.Sections() {
				ids = append(ids, s.ID+"\t"+s.Title)
			}
			ids = append(append(ids, diff.Pages()...), evidencePage)
			return ids, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				for _, s := range analyze.Sections() {
					if _, err := fmt.Fprintf(e.Out, "%-18s %s\n", s.ID, s.Title); err != nil {
						return err
					}
				}
				return nil
			}
			if args[0] == evidencePage {
				_, err := io.WriteString(e.Out, analyze.EvidencePage())
				return err
			}
			if page, err := diff.Page(args[0]); err == nil {
				_, err = io.WriteString(e.Out, page)
				return err
			}
			page, err := analyze.SectionPage(args[0])
			if _, of, found := analyze.FindingPage(args[0]); err != nil && found {
				page, err = of, nil
			}
			if err != nil {
				return usagef("%w; run explain doc for the list", err)
			}
			_, err = io.WriteString(e.Out, page)
			return err
		},
	}
}
