package config

import (
	"fmt"
	"strings"
)

// Doc is the page docs/admin/configuration.md, made from the table of settings.
func Doc() string {
	var b strings.Builder
	b.WriteString(docHead)
	for _, s := range settings() {
		def := s.defNote
		if def == "" {
			def = "`" + s.def + "`"
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | `--%s` | %s | %s |\n", s.key, s.env(), s.flag(), cell(def), cell(s.help))
	}
	b.WriteString(docTail)
	return b.String()
}

// cell keeps a text from breaking the table or reading as HTML.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;").Replace(text)
}

const docHead = `# Configuration

<!-- Written by "go test ./internal/config -update" from the table in internal/config/setting.go. -->

Every setting can be given in four ways. The first that has it wins:

1. a flag, ` + "`--data-dir /srv/svc`" + `
2. an environment variable, ` + "`SVC_DATA_DIR=/srv/svc`" + `
3. a line of the configuration file, ` + "`data_dir: /srv/svc`" + `
4. the default.

The configuration file is YAML, named by ` + "`--config`" + ` or ` + "`SVC_CONFIG`" + `; without either, none is read.

| Key | Variable | Flag | Default | Meaning |
| --- | --- | --- | --- | --- |
`

const docTail = `
Mistakes stop the server before it does anything, all of them listed with their place:

` + "```" + `
config: SVC_ADR is not a setting (did you mean SVC_ADDR?)
config file /etc/svc.yml:3: tier: "gold" is not one of free, premium, ultimate
` + "```" + `

## Details

- An empty environment variable counts as not set. To empty a setting that the file has, give an empty flag: ` + "`--smtp-url=`" + `.
- Variables that start with ` + "`SVC_`" + ` are settings, and an unknown one is an error. Left alone are names that start with ` + "`SVC_TEST_`" + ` and those that Kubernetes sets for services called ` + "`svc`" + ` or ` + "`svc-…`" + `.
- Paths that are not absolute start at the directory in which the server is started.
- Passwords, tokens and keys never show in logs. Everyone on the machine can read the flags of a process, so give secrets by variable or file.
- In the file, ` + "`storages`" + ` may be a mapping and ` + "`trusted_proxies`" + ` a list:

` + "```yaml" + `
external_url: https://forge.example.com
database_url: postgres://svc:password@db.example.com/svc
storages:
  default: /srv/repositories
  archive: /mnt/archive/repositories
trusted_proxies: [10.0.0.0/8, 127.0.0.1]
` + "```" + `
`
