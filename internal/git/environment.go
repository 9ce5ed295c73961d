package git

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// setting is an entry of the git configuration.
type setting struct{ key, value string }

// settings is the configuration of every git process and of new repositories.
// Processes get it in their environment, so that changes to this list apply to
// existing repositories as well. The file in the repository is for operators who
// run git manually.
func settings() []setting {
	return []setting{
		// Durability: objects, packs, indexes and refs are synced before they are renamed
		// to their final names. This package syncs the directories.
		{"core.fsync", "objects,derived-metadata,reference"},
		{"core.fsyncMethod", "fsync"},
		// Pushes are checked by this process; hooks never run.
		{"core.hooksPath", os.DevNull},
		// The reflog is used to look up a push whose record was lost in a crash (WasAt).
		{"core.logAllRefUpdates", "always"},
		// Concurrent pushes to a repository wait for each other instead of failing.
		{"core.filesRefLockTimeout", "2000"},
		{"core.packedRefsTimeout", "5000"},
		{"core.commitGraph", "true"},
		// Larger files are streamed and not delta-compressed, which bounds memory.
		{"core.bigFileThreshold", "32m"},
		{"core.quotePath", "false"},
		{"pack.windowMemory", "128m"},
		{"pack.deltaCacheSize", "64m"},
		{"core.deltaBaseCacheLimit", "96m"},
		{"pack.threads", strconv.Itoa(min(4, runtime.NumCPU()))},
		{"pack.writeReverseIndex", "true"},
		{"repack.writeBitmaps", "true"},
		// Housekeeping runs separately, never as part of another command.
		{"gc.auto", "0"},
		{"maintenance.auto", "false"},
		{"receive.autogc", "false"},
		{"receive.denyCurrentBranch", "ignore"},
		{"transfer.fsckObjects", "true"},
		{"uploadpack.allowFilter", "true"},
		{"uploadpack.allowAnySHA1InWant", "false"},
		// These two would reveal hidden refs and objects reachable only from them.
		{"uploadpack.allowReachableSHA1InWant", "false"},
		{"uploadpack.allowTipSHA1InWant", "false"},
		{"protocol.allow", "never"},
		{"diff.renameLimit", "1000"},
		{"merge.renameLimit", "1000"},
	}
}

// environment returns the environment of every git process. It isolates git from
// the user and system configuration.
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
		// Paths are not patterns.
		"GIT_LITERAL_PATHSPECS=1",
		// A pushed refs/replace/… must not change the meaning of an object ID.
		"GIT_NO_REPLACE_OBJECTS=1",
		// For reflogs. Without it git looks up the host name, which can be slow and can
		// fail.
		"GIT_COMMITTER_NAME=svc",
		"GIT_COMMITTER_EMAIL=svc@localhost",
	}
	if dir := os.Getenv("TMPDIR"); dir != "" {
		env = append(env, "TMPDIR="+dir)
	}
	// The server may not own the directories, but it chooses which ones to open, so
	// all of them are safe.
	list := append(settings(), setting{"safe.directory", "*"})
	env = append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(len(list)))
	for i, s := range list {
		n := strconv.Itoa(i)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+s.key, "GIT_CONFIG_VALUE_"+n+"="+s.value)
	}
	return env
}

// config returns the content of the config file of a new repository.
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
