// SPDX-License-Identifier: Apache-2.0
// Reads YAML so that an error names its line.
//
// The reader of a tree calls FailAt() where something is wrong. ReadYaml() makes an error of that,
// and of what yaml-cpp throws: no exception leaves it.
#pragma once

#include <yaml-cpp/yaml.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/substitute.h"

namespace rollcall {

// Counts from 1; 0 if it belongs to no line.
inline int LineOf(const YAML::Mark& mark) { return mark.is_null() ? 0 : mark.line + 1; }

// What FailAt() throws.
struct WrongYaml {
  int line;
  std::string why;
};

[[noreturn]] inline void FailAt(const YAML::Mark& mark, absl::string_view why) {
  throw WrongYaml{LineOf(mark), std::string(why)};
}

// "line 3: WHY", or WHY where there is no line.
inline absl::Status YamlError(int line, absl::string_view why) {
  return absl::InvalidArgumentError(line == 0 ? std::string(why)
                                              : absl::StrCat("line ", line, ": ", why));
}

// What `read` returns. `no_yaml` is the error for a text that yaml-cpp does not understand; $0 are
// the words of yaml-cpp.
template <typename Read>
auto ReadYaml(Read read, absl::string_view no_yaml = "$0") -> absl::StatusOr<decltype(read())> {
  try {
    return read();
  } catch (const WrongYaml& wrong) {
    return YamlError(wrong.line, wrong.why);
  } catch (const YAML::Exception& wrong) {
    return YamlError(LineOf(wrong.mark), absl::Substitute(no_yaml, wrong.msg));
  }
}

}  // namespace rollcall
