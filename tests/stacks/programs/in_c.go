// SPDX-License-Identifier: Apache-2.0
//go:build cgo

package main

// #include <unistd.h>
// static void wait_in_c(void) { while (pause()) { } }
import "C"

func waitInC() { go func() { C.wait_in_c() }() }
