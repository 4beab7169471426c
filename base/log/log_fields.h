// SPDX-License-Identifier: Apache-2.0
// What a line of the log is about, for logs with fields (the journal): a job, an incident. A sink
// that supports fields reads them while it writes a line; others ignore them.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace rollcall {

class LogFields {
 public:
  using List = std::vector<std::pair<const char*, std::string>>;  // name, value

  // The lines that this thread logs have these fields while this object exists.
  explicit LogFields(List fields) : earlier_(std::exchange(Mutable(), std::move(fields))) {}
  ~LogFields() { Mutable() = std::move(earlier_); }
  LogFields(const LogFields&) = delete;
  LogFields& operator=(const LogFields&) = delete;

  static const List& OfThisThread() { return Mutable(); }

 private:
  static List& Mutable() {
    thread_local List fields;
    return fields;
  }

  List earlier_;
};

inline constexpr char kJobField[] = "ROLLCALL_JOB";
inline constexpr char kIncidentField[] = "ROLLCALL_INCIDENT";

}  // namespace rollcall
