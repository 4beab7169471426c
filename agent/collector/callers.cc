// SPDX-License-Identifier: Apache-2.0
#include "agent/collector/callers.h"

#include <algorithm>

#include "agent/processes/proc_stat.h"
#include "agent/processes/process_namespaces.h"
#include "agent/segments/printable.h"
#include "base/durations.h"

namespace rollcall {
namespace {

constexpr size_t kMostCallers = 16;
constexpr size_t kLongestName = 15;  // the kernel keeps no longer one

}  // namespace

int32_t ThreadNumbers::Translate(uint32_t own_tid, const ProcessReads& reads) {
  constexpr int64_t kReadEvery = kSecond;
  const auto tid = static_cast<pid_t>(own_tid);
  if (!reads.is_live()) return tid;
  if (!reads.process().visible) return 0;
  if (!reads.process().other_numbers) return tid;
  const bool read_lately = read_ns_ != 0 && reads.now_ns() - read_ns_ < kReadEvery;
  if (tids_.count(tid) == 0 && !read_lately) {
    tids_ = reads.Get(TranslateThreads).value_or(std::map<pid_t, pid_t>());
    read_ns_ = reads.now_ns();
  }
  const auto known = tids_.find(tid);
  return known != tids_.end() ? known->second : 0;
}

void CallingThreads::Note(const std::vector<RecordSnapshot>& records) {
  uint32_t known = 0;  // neighbours are mostly of one thread
  for (const RecordSnapshot& record : records) {
    if (record.thread == known || record.thread == 0) continue;
    known = record.thread;
    const bool is_known =
        std::any_of(callers_.begin(), callers_.end(),
                    [known](const Caller& caller) { return caller.own_tid == known; });
    if (is_known) continue;
    // The first is mostly the main thread, with which the others are compared.
    if (callers_.size() == kMostCallers) callers_.erase(callers_.begin() + 1);
    callers_.push_back({known, 0, "", false});
  }
}

// A thread that ends before the next tick has no name.
void CallingThreads::ReadNames(const ProcessReads& reads, ThreadNumbers* numbers) {
  for (Caller& caller : callers_) {
    if (caller.was_read) continue;
    caller.tid = numbers->Translate(caller.own_tid, reads);
    caller.was_read = true;
    if (!reads.is_live() || caller.tid == 0 || reads.process().ended) continue;
    const auto name = reads.Get([tid = caller.tid](const std::string& proc_root, pid_t pid) {
      const auto thread = ReadProcThread(proc_root, pid, tid);
      return thread.ok() ? thread->name : std::string();
    });
    caller.was_read = name.has_value();
    caller.name = Printable(name.value_or("").c_str(), kLongestName);
  }
}

void CallingThreads::Report(const ProcessReads& reads, ThreadNumbers* numbers,
                            v1::Evidence* evidence) {
  ReadNames(reads, numbers);
  const pid_t pid = reads.process().id.pid;
  const bool main_only = std::all_of(callers_.begin(), callers_.end(),
                                     [pid](const Caller& caller) { return caller.tid == pid; });
  if (main_only) return;
  for (const Caller& caller : callers_) {
    v1::CallingThread* added = evidence->add_callers();
    added->set_thread(caller.own_tid);
    added->set_tid(caller.tid);
    added->set_name(caller.name);
  }
}

}  // namespace rollcall
