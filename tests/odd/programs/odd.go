// SPDX-License-Identifier: Apache-2.0

// A job in Go: goroutines call NCCL by cgo, and the garbage collector interrupts threads by signals.
package main

/*
#cgo LDFLAGS: -l:libnccl.so.2
#include <nccl.h>
*/
import "C"

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
)

func join() C.ncclComm_t {
	var id C.ncclUniqueId
	var comm C.ncclComm_t
	if C.ncclGetUniqueId(&id) != 0 || C.ncclCommInitRank(&comm, 2, id, 0) != 0 {
		os.Exit(1)
	}
	return comm
}

func main() {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGQUIT, syscall.SIGUSR1)
	var all sync.WaitGroup
	for i := 0; i < 32; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			comm := join()
			for n := 0; n < 200; n++ {
				if C.ncclAllReduce(nil, nil, 8, C.ncclFloat, C.ncclSum, comm, nil) != 0 {
					os.Exit(1)
				}
				if n%50 == 0 {
					runtime.GC()
				}
			}
			C.ncclCommDestroy(comm)
		}()
	}
	all.Wait()
	syscall.Kill(os.Getpid(), syscall.SIGQUIT)
	fmt.Println("was told", <-told)
	out, err := exec.Command("/bin/echo", "a child").Output()
	fmt.Print(string(out), err, "\n")
	defer func() {
		fmt.Println("recovered:", recover() != nil)
		os.Exit(7)
	}()
	var nothing *int
	*nothing = 1
}
