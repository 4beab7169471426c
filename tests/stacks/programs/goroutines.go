// SPDX-License-Identifier: Apache-2.0
// Idle goroutines of every kind; with cgo, one waits in C.
package main

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync"
	"time"
)

func sleep(depth int) {
	if depth > 0 {
		sleep(depth - 1)
	}
	time.Sleep(24 * time.Hour)
}

func main() {
	var mutex sync.Mutex
	mutex.Lock()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	listener, _ := net.Listen("tcp", "127.0.0.1:0")
	go func() { listener.Accept() }()
	go func() { mutex.Lock() }()
	go sleep(20)
	waitInC()
	fmt.Println("ready")
	<-signals
}
