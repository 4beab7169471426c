// SPDX-License-Identifier: Apache-2.0
// How often a thread sleeps distinguishes a thread that rests in each step from one that waits for
// ever. But each stop by a sample makes the thread sleep twice: in the stop, and again in its
// system call. So the sample counts that, and a comparison of two samples can leave it out.
#pragma once

#include <string>

#include "agent/processes/stack_sample.h"

namespace rollcall {

// Threads of one process whose context switches a sample has: the main thread, and those that run
// Python.
inline constexpr int kMostCounted = 16;

// After the last thread was released: fills in `sample_switches` of these threads, and removes the
// `switches` of the others. A thread that slept before the sample shall sleep again: waits for that
// some milliseconds. What comes later, on a host without a free CPU, is not counted, and the next
// sample shows one or two switches more.
void CountSampleSwitches(const std::string& proc_root, RawSample* sample);

}  // namespace rollcall
