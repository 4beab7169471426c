// SPDX-License-Identifier: Apache-2.0
// Runs a program for a moment, and reads what it prints. For probes that only another program can
// make.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "cli/doctor/facts.h"

namespace rollcall::doctor {

struct ShortResult {
  Attempt attempt = Attempt::kNotMade;  // worked: it ended with 0
  std::string out, err;                 // at most 64 KiB each
};

// `environment` is "NAME=VALUE". A program that has not ended after `patience` is killed. Its stdin
// is empty. Thread-safe.
ShortResult RunShortly(const std::vector<std::string>& command,
                       const std::vector<std::string>& environment,
                       std::chrono::milliseconds patience);

}  // namespace rollcall::doctor
