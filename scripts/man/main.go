// Command man writes the manual pages of the svc command into a directory.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra/doc"

	"svc/internal/cli"
	"svc/internal/config"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: man DIRECTORY")
		os.Exit(2)
	}
	root := cli.Command()
	root.DisableAutoGenTag = true
	// Their date is SOURCE_DATE_EPOCH, if that is set.
	header := &doc.GenManHeader{Title: "SVC", Section: "1", Source: "svc " + config.Version(), Manual: "svc"}
	if err := doc.GenManTree(root, header, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}
