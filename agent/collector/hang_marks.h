// SPDX-License-Identifier: Apache-2.0
// What the agent has reported of hangs to a system that watches this host's health, and what it
// must report next. Each daemon sends all hangs that it blames this host for; the system wants to
// hear of each change.
//
// A hang that no daemon names any longer stays for a minute: a daemon that restarts, or hands a job
// to another one, names none for a while.
//
// Pure: the caller gives the time and reports what came of each step. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "rollcall/v1/agent.pb.h"

namespace rollcall {

class HangMarks {
 public:
  static constexpr int64_t kStaysNs = 60'000'000'000;
  static constexpr int64_t kRetryAfterNs = 5'000'000'000;

  using Hang = v1::HostHangs::Hang;

  struct Step {
    enum class Kind : uint8_t {
      kRaise,    // the hang began, or the host's hardware now shows an error
      kClear,    // it is over
      kClearAll  // nothing hangs here: an earlier run of the agent may have reported otherwise
    };
    Kind kind = Kind::kRaise;
    Hang hang;  // not for kClearAll
  };

  // All that the source, a stream to a daemon, blames this host for.
  void Set(const void* source, const v1::HostHangs& hangs, int64_t now_ns);
  void Drop(const void* source);  // the stream is over

  // The step that is due; nullopt if there is none now. Call it every second, and Done() after each
  // step: the system may have taken it even if the answer was lost, so until Done() it counts as
  // taken.
  std::optional<Step> Next(int64_t now_ns);
  void Done(const Step& step, bool is_taken, int64_t now_ns);

 private:
  struct Mark {
    Hang hang;                  // as it was last reported
    bool is_known = false;      // the system has confirmed it
    int64_t named_ns = 0;       // when a daemon named it last
    int64_t not_before_ns = 0;  // the next step
  };

  void TakeIn(int64_t now_ns);
  std::optional<Step> NextClear(int64_t now_ns) const;
  std::optional<Step> NextRaise(int64_t now_ns);

  std::map<const void*, v1::HostHangs> sources_;
  std::map<std::string, Mark> marks_;   // by incident
  std::map<std::string, Hang> wanted_;  // by incident, of all sources
  std::optional<int64_t> first_ns_;     // when a daemon first reported something
  bool has_swept_ = false;              // the reports of an earlier run are cleared
  int64_t sweep_not_before_ns_ = 0;
};

}  // namespace rollcall
