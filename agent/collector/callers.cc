// SPDX-License-Identifier: Apache-2.0
#include "agent/collector/callers.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "agent/collector/collector.h"
#include "agent/processes/proc_stat.h"
#include "base/durations.h"

namespace rollcall {
namespace {

constexpr size_t kMostCallers = 16;
constexpr size_t kLongestName = 15;  // the kernel keeps no longer one
constexpr int64_t kReadNameTimeout = kSecond / 20;

}  // namespace

void NoteCallers(const std::vector<RecordSnapshot>& records, std::vector<Caller>* callers) {
  uint32_t known = 0;  // neighbours are mostly of one thread
  for (const RecordSnapshot& record : records) {
    if (record.thread == known || record.thread == 0) continue;
    known = record.thread;
    const bool is_known =
        std::any_of(callers->begin(), callers->end(),
                    [known](const Caller& caller) { return caller.own_tid == known; });
    if (is_known) continue;
    // The first is mostly the main thread, with which the others are compared.
    if (callers->size() == kMostCallers) callers->erase(callers->begin() + 1);
    callers->push_back({known, 0, "", false});
  }
}

// A thread that ends before the next tick has no name.
void Collector::ReadCallers(int64_t now_ns, CollectedProcess* process) const {
  for (Caller& caller : process->callers) {
    if (caller.was_read) continue;
    caller.tid = TranslateThread(now_ns, caller.own_tid, process);
    caller.was_read = true;
    if (!options_.live || caller.tid == 0 || process->ended) continue;
    const auto read = [proc_root = options_.proc_root, pid = process->id.pid, tid = caller.tid] {
      const auto thread = ReadProcThread(proc_root, pid, tid);
      return thread.ok() ? thread->name : std::string();
    };
    const std::string key = absl::StrCat("process ", process->id.pid);
    const auto name = threads_->Get<std::string>(key, read, kReadNameTimeout, PayerOf(*process));
    caller.was_read = name.has_value();
    caller.name = Printable(name.value_or("").c_str(), kLongestName);
  }
}

void Collector::ReportCallers(int64_t now_ns, CollectedProcess* process,
                              v1::Evidence* evidence) const {
  ReadCallers(now_ns, process);
  const bool main_only =
      std::all_of(process->callers.begin(), process->callers.end(),
                  [process](const Caller& caller) { return caller.tid == process->id.pid; });
  if (main_only) return;
  for (const Caller& caller : process->callers) {
    v1::CallingThread* added = evidence->add_callers();
    added->set_thread(caller.own_tid);
    added->set_tid(caller.tid);
    added->set_name(caller.name);
  }
}

}  // namespace rollcall
