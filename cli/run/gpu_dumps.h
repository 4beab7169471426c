// SPDX-License-Identifier: Apache-2.0
// Asks the CUDA driver in ranks of a confirmed hang, on this host, for core dumps of their GPUs,
// has NVIDIA's debugger read them, and removes them.
//
// A thread of its own asks one process after the other. It opens pipes without waiting for a reader
// and asks only a process that has begun with the variables of this run: then the dump has no
// memory of the job, and its process goes on (dump_variables.h). That a process goes on was not
// tried on real hardware.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "agent/processes/spare_threads.h"
#include "base/mutex.h"
#include "base/worker.h"
#include "daemon/loop/gpu_dump_source.h"
#include "rollcall/v1/incident.pb.h"
#include "security/redact.h"

namespace rollcall {

class GpuDumps : public GpuDumpSource {
 public:
  // Called on this object's thread, for each target.
  using Add = std::function<void(const JobKey&, const std::string& incident, const v1::GpuDump&)>;

  // `folder`: of MakeGpuDumpFolder().
  GpuDumps(std::string folder, std::shared_ptr<const Redactor> redactor, Add add);
  ~GpuDumps() override;  // as Stop()
  GpuDumps(const GpuDumps&) = delete;
  GpuDumps& operator=(const GpuDumps&) = delete;

  void Ask(const GpuDumpRequest& request) override ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether something about this confirmed incident may still come: the code that ends the job
  // waits for it, for a minute at most. `now_ns`: monotonic.
  bool Awaits(const std::string& incident, int64_t now_ns) ABSL_LOCKS_EXCLUDED(mutex_);

  // Asks no process from now on, and waits for the thread.
  void Stop();

 private:
  void Work(const GpuDumpRequest& request) ABSL_LOCKS_EXCLUDED(mutex_);
  v1::GpuDump Take(const GpuDumpTarget& target);
  std::string WhyNotAsked(const GpuDumpTarget& target);
  std::string AwaitFile(const GpuDumpTarget& target) const;
  void ReadWithDebugger(const GpuDumpTarget& target, v1::GpuDump* dump) const;
  bool IsAlive(int32_t pid) const;
  bool Sleep(int64_t ns) const;

  const std::string folder_;
  const std::shared_ptr<const Redactor> redactor_;
  const Add add_;
  SpareThreads reads_;
  std::atomic<bool> is_stopping_{false};
  Mutex mutex_;
  std::map<std::string, int64_t> awaited_since_ns_ ABSL_GUARDED_BY(mutex_);  // by incident
  std::set<std::string> done_ ABSL_GUARDED_BY(mutex_);                       // incidents
  Worker worker_;  // last: its thread uses all of the above
};

}  // namespace rollcall
