// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/stack_namer.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "agent/processes/payer.h"
#include "agent/python/symbols_in_memory.h"
#include "base/durations.h"
#include "base/monotonic_clock.h"

namespace rollcall {
namespace {

constexpr int kTries = 3;
constexpr int64_t kMinute = 60 * kSecond;
constexpr int64_t kSilentFor = kMinute;
constexpr int64_t kCostlyFor = 60 * kMinute;
constexpr size_t kMostLeftOut = 64;  // of one user
constexpr size_t kMostUsers = 1024;
constexpr size_t kMostRequest = size_t{128} << 20;
// What one request may take without a charge.
constexpr int64_t kUsualNs = 2 * kSecond;

void AddError(const std::string& text, ProcessStack* stack) {
  absl::StrAppend(&stack->error, stack->error.empty() ? "" : "\n", text);
}

// The paths of the sample's files that were left out, by whether it was for silence.
void SayLeftOut(const StackWork& work, ProcessStack* stack) {
  std::set<std::string> silent, costly;
  for (const ProcMap& map : work.sample.maps) {
    const auto& devices = work.silent_devices;
    const auto& files = work.costly_files;
    const bool is_file = map.inode != 0;
    if (is_file && std::find(devices.begin(), devices.end(), map.device) != devices.end()) {
      silent.insert(map.path);
    }
    if (is_file && std::find(files.begin(), files.end(), IdOf(map)) != files.end()) {
      costly.insert(map.path);
    }
  }
  const auto others = [](const std::set<std::string>& paths) {
    return paths.size() < 2 ? "" : absl::StrCat(" and ", paths.size() - 1, " others");
  };
  if (!silent.empty()) {
    AddError(absl::StrCat("the file server of ", *silent.begin(), others(silent),
                          " does not answer: no names from there"),
             stack);
  }
  if (!costly.empty()) {
    AddError(absl::StrCat("the symbols of ", *costly.begin(), others(costly),
                          " take more memory or time than the agent gives: no names from there"),
             stack);
  }
}

ProcessStack WithoutFiles(const RawSample& sample, const TakeLimits& limits,
                          const std::string& proc_root) {
  StackReader reader(proc_root);
  reader.LeaveOutAll();
  return reader.Unwind(sample, limits);
}

}  // namespace

void WastedTime::Forgive(int64_t now_ns, Wasted* wasted) {
  const int64_t forgiven = (now_ns - wasted->at_ns) / (kMinute / kMost);
  wasted->ns = std::max<int64_t>(wasted->ns - forgiven, 0);
  wasted->at_ns = now_ns;
}

bool WastedTime::IsOver(const Payer& user, int64_t now_ns) {
  const auto at = users_.find(user);
  if (at == users_.end()) return false;
  Forgive(now_ns, &at->second);
  return at->second.ns >= kMost;
}

void WastedTime::Add(const Payer& user, int64_t wasted_ns, int64_t now_ns) {
  for (auto at = users_.begin(); at != users_.end();) {
    Forgive(now_ns, &at->second);
    at = at->second.ns == 0 ? users_.erase(at) : std::next(at);
  }
  Wasted& wasted = users_[user];
  wasted.at_ns = now_ns;
  wasted.ns += wasted_ns;
}

StackNamer::StackNamer(std::string proc_root, const std::string& programs,
                       const StackWorkLimits& limits)
    : proc_root_(std::move(proc_root)), worker_(programs, limits) {}

void StackNamer::LeaveOut(const StackWorker::Answer& answer, const Payer& payer) {
  const bool is_silent = answer.end == StackWorker::End::kSilent;
  if (left_out_.size() >= kMostUsers) left_out_.clear();
  std::vector<LeftOut>& list = left_out_[payer];
  if (list.size() >= kMostLeftOut) list.clear();
  list.push_back({is_silent, answer.file, MonotonicNs() + (is_silent ? kSilentFor : kCostlyFor)});
}

void StackNamer::FillLeftOut(const Payer& payer, StackWork* work) {
  work->silent_devices.clear();
  work->costly_files.clear();
  const auto at = left_out_.find(payer);
  if (at == left_out_.end()) return;
  std::vector<LeftOut>& list = at->second;
  const int64_t now_ns = MonotonicNs();
  const auto is_over = [now_ns](const LeftOut& one) { return one.until_ns < now_ns; };
  list.erase(std::remove_if(list.begin(), list.end(), is_over), list.end());
  for (const LeftOut& one : list) {
    if (one.is_device) {
      work->silent_devices.push_back(one.file.device);
    } else {
      work->costly_files.push_back(one.file);
    }
  }
}

// False if there is no answer, and `why` has the reason.
bool StackNamer::Do(StackWork* work, std::string* answer, std::string* why) {
  const Payer payer = ReadPayer(proc_root_, work->sample.pid);
  work->proc_root = proc_root_;
  for (int i = 0; i < kTries; ++i) {
    const int64_t begun_ns = MonotonicNs();
    FillLeftOut(payer, work);
    if (wasted_.IsOver(payer, begun_ns)) {
      *why = absl::StrCat("the files of user ", payer.user,
                          " have taken too much of the agent's time for symbols: no names");
      return false;
    }
    const std::string request = ToBytes(*work);
    if (request.size() > kMostRequest) {
      *why = "the stacks are too large: no names";
      return false;
    }
    StackWorker::Answer got = worker_.Ask(request, payer);
    if (got.end == StackWorker::End::kAnswered) {
      const int64_t took_ns = MonotonicNs() - begun_ns;
      if (took_ns > kUsualNs) wasted_.Add(payer, took_ns - kUsualNs, MonotonicNs());
      *answer = std::move(got.bytes);
      return true;
    }
    *why = got.end == StackWorker::End::kNone ? absl::StrCat("no names: ", got.why)
                                              : "the files of the process cannot be read: no names";
    if (got.end == StackWorker::End::kNone) return false;
    // What earlier requests have left in its memory is not this one's.
    if (got.end == StackWorker::End::kLost && !got.was_first) continue;
    wasted_.Add(payer, MonotonicNs() - begun_ns, MonotonicNs());
    if (got.file == FileId()) return false;
    LeaveOut(got, payer);
  }
  FillLeftOut(payer, work);
  return false;
}

ProcessStack StackNamer::Name(RawSample sample, const TakeLimits& limits) {
  StackWork work;
  work.limits = limits;
  work.sample = std::move(sample);
  std::string answer, why;
  ProcessStack stack;
  bool is_named = false;
  {
    const MutexLock lock(mutex_);
    is_named = Do(&work, &answer, &why);
  }
  if (is_named && FromBytes(answer, &stack)) {
    SayLeftOut(work, &stack);
    return stack;
  }
  stack = WithoutFiles(work.sample, limits, proc_root_);
  SayLeftOut(work, &stack);
  AddError(why, &stack);
  return stack;
}

FoundSymbols StackNamer::FindSymbols(pid_t pid, const ProcMap& first,
                                     const std::vector<std::string>& names, ProcessMemory* memory) {
  StackWork work;
  work.kind = StackWorkKind::kFindSymbols;
  work.sample.pid = pid;
  work.file = first;
  work.names = names;
  std::string answer, why;
  std::vector<uint64_t> distances;
  bool is_answered = false;
  {
    const MutexLock lock(mutex_);
    is_answered = Do(&work, &answer, &why);
  }
  const auto& silent = work.silent_devices;
  const bool is_silent = std::find(silent.begin(), silent.end(), first.device) != silent.end();
  if (is_answered && !is_silent && FromBytes(answer, &distances) &&
      distances.size() == names.size()) {
    return {std::move(distances)};
  }
  ResidentMemory resident(memory, proc_root_, pid);
  return {FindSymbolsInMemory(first, names, &resident), true};
}

}  // namespace rollcall
