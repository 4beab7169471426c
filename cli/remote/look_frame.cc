// SPDX-License-Identifier: Apache-2.0
#include "cli/remote/look_frame.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/clean_text.h"
#include "daemon/access/clean_message.h"
#include "daemon/agents/parsed_size.h"
#include "proto/look_limits.h"

namespace rollcall {
namespace {

constexpr size_t kLongestToken = 64;
constexpr int64_t kLatestNs = INT64_MAX / 4;

template <typename Repeated>
void KeepFirst(int most, Repeated* field) {
  if (field->size() > most) field->DeleteSubrange(most, field->size() - most);
}

// So that the difference of two times fits.
int64_t PossibleTime(int64_t ns) { return std::clamp<int64_t>(ns, 0, kLatestNs); }

void KeepLimits(v1::HostLook* look) {
  look->set_begun_ns(PossibleTime(look->begun_ns()));
  look->set_ended_ns(PossibleTime(look->ended_ns()));
  KeepFirst(kMostProcessesOfLook, look->mutable_processes());
  for (v1::ProcessLook& process : *look->mutable_processes()) {
    KeepFirst(kMostSamplesOfProcess, process.mutable_samples());
    for (v1::StackSample& sample : *process.mutable_samples())
      sample.set_taken_ns(PossibleTime(sample.taken_ns()));
  }
  KeepFirst(kMostUnseenOfLook, look->mutable_unseen());
  KeepFirst(kMostRasAnswersOfLook, look->mutable_ras());
  KeepFirst(kMostLogsOfLook, look->mutable_logs());
  for (v1::LogEnd& log : *look->mutable_logs()) {
    KeepFirst(kMostLinesOfLog, log.mutable_lines());
    if (log.pids_size() > kMostProcessesOfLook) log.mutable_pids()->Truncate(kMostProcessesOfLook);
  }
}

}  // namespace

std::string LookHead(absl::string_view token) { return absl::StrCat("rollcall-look ", token, " "); }

bool IsLookToken(absl::string_view token) {
  return !token.empty() && token.size() <= kLongestToken &&
         std::all_of(token.begin(), token.end(), absl::ascii_isxdigit);
}

std::string FramedLook(absl::string_view token, v1::HostLook look) {
  if (look.ByteSizeLong() > kMostLookBytes) {
    for (v1::ProcessLook& process : *look.mutable_processes()) process.clear_samples();
    look.add_unseen("the stacks of this host's processes were left out: they are too large");
  }
  if (look.ByteSizeLong() > kMostLookBytes) look.clear_recorded();
  const std::string bytes = look.SerializeAsString();
  return absl::StrCat(LookHead(token), bytes.size(), "\n", bytes);
}

absl::StatusOr<v1::HostLook> ParseLook(absl::string_view bytes, ByteBudget* budget) {
  static const ParsedSize kSize(v1::HostLook::descriptor());
  google::protobuf::io::ArrayInputStream input(bytes.data(), static_cast<int>(bytes.size()));
  const std::optional<uint64_t> size = kSize.Of(&input);
  if (!size) return absl::InvalidArgumentError("what it sent is not a look at a host");
  if (!budget->Take(*size)) return absl::ResourceExhaustedError(kTooLargeLook);
  v1::HostLook look;
  if (!look.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    budget->GiveBack(*size);
    return absl::InvalidArgumentError("what it sent is not a look at a host");
  }
  KeepLimits(&look);
  // RAS answers in lines.
  std::vector<std::string> texts;
  for (const v1::RasAnswer& answer : look.ras()) {
    texts.push_back(CleanLines(answer.text().substr(0, kMostRasText)));
  }
  CleanStrings(&look);
  for (int i = 0; i < look.ras_size(); ++i) {
    look.mutable_ras(i)->set_text(texts[static_cast<size_t>(i)]);
  }
  return look;
}

}  // namespace rollcall
