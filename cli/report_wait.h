// SPDX-License-Identifier: Apache-2.0
// How long `rollcall run` holds an incident back for its report, whose stacks take a moment. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace rollcall {

class ReportWait {
 public:
  static constexpr int64_t kSilentNs = 1'000'000'000;
  static constexpr int64_t kPatienceNs = 5'000'000'000;

  enum class Step {
    kWait,
    kTell,  // once: the user should know that something happens
    kDue,   // without its report
  };

  // What to do about an incident without a report. `now_ns`: monotonic.
  Step Next(const std::string& incident, int64_t now_ns) {
    const int64_t waited_ns = now_ns - since_ns_.emplace(incident, now_ns).first->second;
    if (waited_ns >= kPatienceNs) return Step::kDue;
    return waited_ns >= kSilentNs && told_.insert(incident).second ? Step::kTell : Step::kWait;
  }

 private:
  std::map<std::string, int64_t> since_ns_;
  std::set<std::string> told_;
};

}  // namespace rollcall
