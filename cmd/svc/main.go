// Command svc is a self-hosted home for source code and its CI/CD.
package main

import (
	"os"

	"svc/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr)) }
