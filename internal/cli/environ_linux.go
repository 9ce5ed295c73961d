package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// wipe overwrites the values of variables in the memory that the kernel shows as
// /proc/PID/environ. Unsetting a variable does not change that memory, and processes
// of root can read it as long as the process runs.
func wipe(names []string) (err error) {
	start, err := environStart()
	if err != nil {
		return err
	}
	environ, err := os.ReadFile("/proc/self/environ")
	if err != nil {
		return err
	}
	memory, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, memory.Close()) }()
	at := start
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		name, value, _ := strings.Cut(string(entry), "=")
		if value != "" && slices.Contains(names, name) {
			if err := overwrite(memory, at+int64(len(name))+1, value); err != nil {
				return err
			}
		}
		at += int64(len(entry)) + 1
	}
	return nil
}

// overwrite replaces a value in the environment, after checking that it is at that
// address.
func overwrite(memory *os.File, at int64, value string) error {
	found := make([]byte, len(value))
	if _, err := memory.ReadAt(found, at); err != nil && err != io.EOF {
		return err
	}
	if string(found) != value {
		return errors.New("the environment is not at the address in /proc/self/stat")
	}
	_, err := memory.WriteAt(bytes.Repeat([]byte{'x'}, len(value)), at)
	return err
}

// environStart returns the address of the environment, the 50th field of
// /proc/self/stat. The second field is in parentheses and may contain spaces.
func environStart() (int64, error) {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " ")
	fields := strings.Fields(rest) // starting with the third field
	if len(fields) < 48 {
		return 0, fmt.Errorf("/proc/self/stat has %d fields", len(fields)+2)
	}
	return strconv.ParseInt(fields[47], 10, 64)
}
