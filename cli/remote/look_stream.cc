// SPDX-License-Identifier: Apache-2.0
#include "cli/remote/look_stream.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "cli/remote/look_frame.h"
#include "cli/remote/remote_script.h"
#include "proto/look_limits.h"

namespace rollcall {
namespace {

constexpr size_t kLongestLine = 256;  // no line that is looked for is longer

}  // namespace

LookStream::LookStream(const std::string& token, ByteBudget* budget)
    : needs_program_(NeedsProgramLine(token)), head_(LookHead(token)), room_(budget) {}

void LookStream::Fail(const char* why) {
  state_ = State::kFailed;
  error_ = why;
  look_.clear();
}

void LookStream::EndLine() {
  absl::string_view line = absl::StripSuffix(line_, "\r");
  if (line == needs_program_) {
    state_ = State::kNeedsProgram;
  } else if (absl::ConsumePrefix(&line, head_)) {
    if (!absl::SimpleAtoi(line, &length_) || length_ == 0 || length_ > kMostLookBytes) {
      Fail("it sent a look of a size that is not allowed");
    } else {
      in_look_ = true;
    }
  }
  line_.clear();
}

LookStream::State LookStream::Add(absl::string_view bytes) {
  while (!bytes.empty() && state_ != State::kDone && state_ != State::kFailed) {
    if (in_look_) {
      const size_t taken = std::min(bytes.size(), length_ - look_.size());
      if (!room_.Take(taken)) {
        Fail(kTooLargeLook);
        continue;
      }
      look_.append(bytes.data(), taken);
      bytes.remove_prefix(taken);
      if (look_.size() == length_) state_ = State::kDone;
      continue;
    }
    const char byte = bytes.front();
    bytes.remove_prefix(1);
    if (++greeting_ > kMostGreeting) {
      Fail("it printed too much besides its look");
    } else if (byte == '\n') {
      EndLine();
    } else if (line_.size() < kLongestLine) {
      line_ += byte;
    }
  }
  return state_;
}

}  // namespace rollcall
