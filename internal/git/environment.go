package git

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// setting is a line of git's configuration.
type setting struct{ key, value string }

// settings is the configuration of every git process and of every repository
// that Init makes. Processes get it in their environment, so a repository
// that is older than a change of this list follows it as well; the file in
// the repository is for the operator who runs git by hand.
func settings() []setting {
	return []setting{
		// What was acknowledged survives a crash of the machine: objects,
		// packs, their indexes and refs are synced before they get their
		// names. Directories are synced by this package.
		{"core.fsync", "objects,derived-metadata,reference"},
		{"core.fsyncMethod", "fsync"},
		// Pushes are checked in this process; a hook is never run.
		{"core.hooksPath", os.DevNull},
		// What a ref held is written down, so that a push whose record was lost in a
		// crash can be looked up (WasAt). Git drops the log with the ref, so it is in
		// no one's way.
		{"core.logAllRefUpdates", "always"},
		// Pushes to one repository wait for each other rather than fail.
		{"core.filesRefLockTimeout", "2000"},
		{"core.packedRefsTimeout", "5000"},
		{"core.commitGraph", "true"},
		// Files above this are streamed and not searched for deltas, which
		// bounds the memory of a process.
		{"core.bigFileThreshold", "32m"},
		{"core.quotePath", "false"},
		{"pack.windowMemory", "128m"},
		{"pack.deltaCacheSize", "64m"},
		{"core.deltaBaseCacheLimit", "96m"},
		{"pack.threads", strconv.Itoa(min(4, runtime.NumCPU()))},
		{"pack.writeReverseIndex", "true"},
		{"repack.writeBitmaps", "true"},
		// Housekeeping is done by need, never by the way.
		{"gc.auto", "0"},
		{"maintenance.auto", "false"},
		{"receive.autogc", "false"},
		{"receive.denyCurrentBranch", "ignore"},
		{"transfer.fsckObjects", "true"},
		{"uploadpack.allowFilter", "true"},
		{"uploadpack.allowAnySHA1InWant", "false"},
		// These two would give away hidden refs, and what leads to them.
		{"uploadpack.allowReachableSHA1InWant", "false"},
		{"uploadpack.allowTipSHA1InWant", "false"},
		{"protocol.allow", "never"},
		{"diff.renameLimit", "1000"},
		{"merge.renameLimit", "1000"},
	}
}

// environment is that of every git process: nothing of the user's or the
// system's configuration reaches it.
func environment() []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"),
		"LC_ALL=C",
		"TZ=UTC",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_OPTIONAL_LOCKS=0",
		// Paths of callers hold no patterns.
		"GIT_LITERAL_PATHSPECS=1",
		// A pushed refs/replace/… must not change what an object id means.
		"GIT_NO_REPLACE_OBJECTS=1",
		// For reflogs. Without it git asks the machine for names, which can
		// take long and can fail.
		"GIT_COMMITTER_NAME=svc",
		"GIT_COMMITTER_EMAIL=svc@localhost",
	}
	if dir := os.Getenv("TMPDIR"); dir != "" {
		env = append(env, "TMPDIR="+dir)
	}
	// The server may run as another user than the owner of the directory;
	// which directories it opens is its own choice, so all are safe.
	list := append(settings(), setting{"safe.directory", "*"})
	env = append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(len(list)))
	for i, s := range list {
		n := strconv.Itoa(i)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+s.key, "GIT_CONFIG_VALUE_"+n+"="+s.value)
	}
	return env
}

// config is the content of the configuration file of a new repository.
func config() string {
	var b strings.Builder
	section := ""
	list := append([]setting{
		{"core.repositoryFormatVersion", "0"},
		{"core.fileMode", "true"},
		{"core.bare", "true"},
	}, settings()...)
	for _, s := range list {
		name, key, _ := strings.Cut(s.key, ".")
		if name != section {
			b.WriteString("[" + name + "]\n")
			section = name
		}
		b.WriteString("\t" + key + " = " + s.value + "\n")
	}
	return b.String()
}
