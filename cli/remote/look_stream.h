// SPDX-License-Identifier: Apache-2.0
// Finds a look in what a remote command prints, byte by byte as it arrives: after the greetings of
// a login, and after the request for this program. Pure. The bytes are a stranger's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "cli/remote/byte_budget.h"

namespace rollcall {

class LookStream {
 public:
  enum class State : uint8_t {
    kWaits,
    kNeedsProgram,  // the script waits for it
    kDone,          // look() is whole
    kFailed,        // error() has the reason
  };

  // A host may print this much before its look.
  static constexpr size_t kMostGreeting = 256 << 10;

  // What arrives of a look takes from `budget` until the stream ends.
  LookStream(const std::string& token, ByteBudget* budget);

  State Add(absl::string_view bytes);
  State state() const { return state_; }
  const std::string& look() const { return look_; }
  const std::string& error() const { return error_; }

 private:
  void EndLine();
  void Fail(const char* why);

  const std::string needs_program_, head_;
  ByteShare room_;
  State state_ = State::kWaits;
  std::string line_;     // the current one, cut
  size_t greeting_ = 0;  // bytes that are not a look
  size_t length_ = 0;    // of the look; 0 if unknown yet
  bool in_look_ = false;
  std::string look_, error_;
};

}  // namespace rollcall
