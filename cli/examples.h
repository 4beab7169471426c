// SPDX-License-Identifier: Apache-2.0
// The examples of each subcommand, for --help, man pages and docs/reference/flags.md. Pure.
#pragma once

#include <string>
#include <vector>

namespace rollcall {

struct Example {
  std::string line;  // what to type
  std::string what;  // what it does
};

// Returns the examples of the subcommand of this name. Each subcommand has one at least.
std::vector<Example> ExamplesOf(const std::string& command);

// Returns the end of a --help: "Examples:" and two lines for each example.
std::string ExamplesText(const std::vector<Example>& examples);

}  // namespace rollcall
