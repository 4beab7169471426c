// SPDX-License-Identifier: Apache-2.0
#include "agent/logs/logs.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/logs/log_tail.h"
#include "agent/processes/proc_stat.h"
#include "base/clean_text.h"
#include "base/durations.h"
#include "base/monotonic_clock.h"
#include "proto/look_limits.h"
#include "security/shown_text.h"

namespace rollcall {
namespace {

constexpr int kStdout = 1, kStderr = 2;

int64_t WallNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::optional<LogTail> TailOf(const std::string& proc_root, ProcessId process, int descriptor) {
  std::optional<LogTail> tail = ReadLogTail(proc_root, process.pid, descriptor);
  const auto stat = ReadProcStat(proc_root, process.pid);
  return stat.ok() && stat->start_time == process.start_time ? std::move(tail) : std::nullopt;
}

v1::LogEnd ToLogEnd(const LogTail& tail, const Redactor& redactor) {
  v1::LogEnd log;
  log.set_path(CleanText(redactor.Redact(tail.path)));
  const int64_t quiet_ns = std::max<int64_t>(WallNs() - tail.changed_ns, 0);
  log.set_quiet_seconds(static_cast<double>(quiet_ns / (kSecond / 1000)) / 1000.0);
  // A secret may have several lines, or be cut in one.
  const std::string end = WithoutTornKey(ShownText(tail.end));
  for (const std::string& line : LastLines(redactor.Redact(end))) log.add_lines(line);
  return log;
}

}  // namespace

std::vector<v1::LogEnd> ReadLogs(const std::vector<LogWriter>& writers, const LogOptions& options,
                                 SpareThreads* threads) {
  const int64_t until_ns = MonotonicNs() + options.patience_ns;
  std::vector<v1::LogEnd> logs;
  std::map<std::tuple<uint64_t, uint64_t>, size_t> known;
  for (const LogWriter& writer : writers) {
    const pid_t pid = writer.process.pid;
    for (const int descriptor : {kStdout, kStderr}) {
      if (MonotonicNs() >= until_ns) return logs;
      const auto tail = threads->Get<std::optional<LogTail>>(
          absl::StrCat("log ", pid),
          [root = options.proc_root, permits = options.permits, process = writer.process,
           descriptor] {
            const bool may_read = !permits || permits(process);
            return may_read ? TailOf(root, process, descriptor) : std::nullopt;
          },
          options.one_ns, writer.payer);
      if (!tail.has_value()) break;  // it blocks
      if (!tail->has_value()) continue;
      const auto [at, is_new] = known.emplace((*tail)->file, logs.size());
      if (is_new && logs.size() == kMostLogsOfLook) return logs;
      if (is_new) logs.push_back(ToLogEnd(**tail, *options.redactor));
      auto* pids = logs[at->second].mutable_pids();
      if (pids->empty() || pids->Get(pids->size() - 1) != pid) pids->Add(pid);
    }
  }
  return logs;
}

}  // namespace rollcall
