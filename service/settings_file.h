// SPDX-License-Identifier: Apache-2.0
// A file of settings: YAML, one flag a line, without its dashes. A value is one word or sentence,
// or a list of them:
//
//   hang-after: 2m
//   grant:
//     - agent=dns:*.example.com
//
// A value is taken as it is written: `off` is the word, not false.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rollcall {

struct Setting {
  std::string name;  // without dashes
  std::vector<std::string> values;
  bool is_list = false;
  int line = 0;  // from 1
};

// "FILE:LINE: TEXT"
std::string AtLine(const std::string& file, int line, const std::string& text);

// The settings in `text`, in their order. An error has a line for each thing that is wrong, with
// `file` and the line in it.
absl::StatusOr<std::vector<Setting>> ParseSettings(const std::string& text,
                                                   const std::string& file);

// The content of the file. Errors name why it cannot be read.
absl::StatusOr<std::string> ReadSettingsText(const std::string& file);

}  // namespace rollcall
