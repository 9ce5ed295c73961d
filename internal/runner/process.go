package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// niceness is the scheduling priority of jobs.
const niceness = 10

// program is a program that a job runs in a new process group.
type program struct {
	path string
	args []string
	dir  string
	env  []string
	out  io.Writer
	mark string        // value of markName in the environment of its processes
	kill time.Duration // time between SIGTERM and SIGKILL
	// quiet suppresses error messages.
	quiet bool
}

// exitError is the error of a program that exited with a status other than 0.
type exitError struct{ code int }

func (e *exitError) Error() string { return fmt.Sprintf("exit status %d", e.code) }

// run runs a program until it exits. If ctx ends first, the process group is
// terminated and then killed, and the cause is returned. Processes that the
// program leaves running are killed.
func (p program) run(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	in, out, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	cmd := exec.Command(p.path, p.args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = p.dir, p.env, out, out
	if p.quiet {
		cmd.Stderr = nil
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	_ = out.Close() // the program has inherited it
	if err != nil {
		return fmt.Errorf("start %s: %w", filepath.Base(p.path), err)
	}
	_ = syscall.Setpriority(syscall.PRIO_PGRP, cmd.Process.Pid, niceness) // fails if it has already exited
	copied := make(chan error, 1)
	go func() {
		_, err := io.Copy(p.out, in)
		copied <- err
	}()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	err = p.await(ctx, cmd.Process.Pid, ended)
	// The group ID is not reused while the group has a process.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if lost := p.drain(in, copied); lost != nil && err == nil {
		err = fmt.Errorf("write the log: %w", lost)
	}
	return err
}

// await waits for a process. If ctx ends, it terminates the process group.
func (p program) await(ctx context.Context, pid int, ended <-chan error) error {
	select {
	case err := <-ended:
		return exited(err)
	case <-ctx.Done():
	}
	_ = syscall.Kill(-pid, syscall.SIGTERM)
	late := time.NewTimer(p.kill)
	defer late.Stop()
	select {
	case <-ended:
	case <-late.C:
		_ = syscall.Kill(-pid, syscall.SIGKILL)
		<-ended
	}
	return context.Cause(ctx)
}

func exited(err error) error {
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		status := failed.Sys().(syscall.WaitStatus)
		if status.Signaled() {
			return &exitError{128 + int(status.Signal())} // as in a shell
		}
		return &exitError{failed.ExitCode()}
	}
	return err
}

// drainTime is how long processes outside of the group may keep the output open,
// before and after they are killed.
const drainTime = 200 * time.Millisecond

// drain waits until all output has been read.
func (p program) drain(in *os.File, copied <-chan error) error {
	for range 2 {
		late := time.NewTimer(drainTime)
		select {
		case err := <-copied:
			late.Stop()
			return err
		case <-late.C:
			killMarked(p.mark)
		}
	}
	_ = in.Close() // so that the copy ends
	<-copied
	return nil
}

// markName is the environment variable by which killMarked finds processes of a job
// that have left its process group.
const markName = "RUNNER_PROCESS_MARK"

// killMarked kills the processes that have a mark in their environment. It works
// only on systems with /proc.
func killMarked(mark string) {
	if mark == "" {
		return
	}
	entry := []byte(markName + "=" + mark)
	// Repeated, because a process may fork while the list is read.
	for range 10 {
		found := false
		list, err := filepath.Glob("/proc/[0-9]*/environ")
		if err != nil {
			return
		}
		for _, path := range list {
			environ, err := os.ReadFile(path)
			if err != nil { // another user's process, or exited
				continue
			}
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if err != nil || pid == os.Getpid() || !bytes.Contains(environ, entry) {
				continue
			}
			found = syscall.Kill(pid, syscall.SIGKILL) == nil || found
		}
		if !found {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
