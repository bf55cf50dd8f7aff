package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// getTimeout bounds one fetch.
const getTimeout = 5 * time.Second

func exit(args []string) int {
	if len(args) != 1 {
		return fail("usage: exit N")
	}
	code, err := strconv.Atoi(args[0])
	if err != nil {
		return fail("not a number: %s", args[0])
	}
	return code
}

func sleep(args []string) int {
	if len(args) == 0 {
		return waitForSignal()
	}
	d, err := time.ParseDuration(args[0])
	if err != nil {
		return fail("not a duration: %s", args[0])
	}
	time.Sleep(d)
	if len(args) > 1 {
		return exit(args[1:])
	}
	return 0
}

// tty tells whether standard input is a terminal.
func tty([]string) int {
	info, err := os.Stdin.Stat()
	if err == nil && info.Mode()&os.ModeCharDevice != 0 {
		fmt.Println("tty: yes")
		return 0
	}
	fmt.Println("tty: no")
	return 1
}

// waitForSignal ends with code 0 on SIGTERM or SIGINT, as a well-behaved server does.
func waitForSignal() int {
	<-terminated()
	return 0
}

func terminated() <-chan os.Signal {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	return signals
}

func spin([]string) int {
	signals := terminated()
	for len(signals) == 0 {
	}
	return 0
}

func alloc(args []string) int {
	if len(args) != 1 {
		return fail("usage: alloc MB")
	}
	megabytes, err := strconv.Atoi(args[0])
	if err != nil {
		return fail("not a number: %s", args[0])
	}
	held := make([][]byte, 0, megabytes)
	for range megabytes {
		held = append(held, bytes.Repeat([]byte{1}, 1<<20))
	}
	fmt.Printf("holding %d MB\n", len(held))
	code := waitForSignal()
	fmt.Printf("held %d MB\n", len(held))
	return code
}

func env([]string) int {
	all := os.Environ()
	slices.Sort(all)
	fmt.Println(strings.Join(all, "\n"))
	return 0
}

func cat(args []string) int {
	for _, path := range args {
		content, err := os.ReadFile(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		os.Stdout.Write(content)
	}
	return 0
}

func write(args []string) int {
	if len(args) != 2 {
		return fail("usage: write FILE TEXT")
	}
	if err := os.WriteFile(args[0], []byte(args[1]), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func id([]string) int {
	groups, err := os.Getgroups()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Printf("uid=%d gid=%d groups=%v\n", os.Getuid(), os.Getgid(), groups)
	return 0
}

func echo(args []string) int {
	fmt.Println(strings.Join(args, " "))
	return 0
}

func ignoreTerm([]string) int {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	fmt.Println("ignoring SIGTERM")
	for range signals {
		fmt.Println("ignored SIGTERM")
	}
	return 0
}

func upper([]string) int {
	buf := make([]byte, 4096)
	for {
		n, err := os.Stdin.Read(buf)
		os.Stdout.Write(bytes.ToUpper(buf[:n]))
		if err != nil {
			return 0
		}
	}
}

func get(args []string) int {
	if len(args) != 1 {
		return fail("usage: get URL")
	}
	client := http.Client{Timeout: getTimeout}
	res, err := client.Get(args[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer res.Body.Close()
	if _, err := io.Copy(os.Stdout, res.Body); err != nil || res.StatusCode >= 400 {
		fmt.Fprintln(os.Stderr, res.Status, err)
		return 1
	}
	return 0
}
