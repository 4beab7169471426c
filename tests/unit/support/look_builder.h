// SPDX-License-Identifier: Apache-2.0
// Builds looks at hosts for the tests of `rollcall diagnose`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/durations.h"
#include "rollcall/v1/look.pb.h"

namespace rollcall {

inline constexpr int32_t kFirstPid = 4000;
inline constexpr int64_t kLookBegunNs = 1000 * kSecond;

struct SeenFrame {
  const char* function;
  const char* file;  // of Python; empty means a function of C
  int line = 0;
};

struct SeenStack {
  std::vector<SeenFrame> frames;  // innermost first
  std::string state = "S";
  double cpu_seconds = 1;
  uint64_t switches = 0;  // of its main thread; 0 if unknown
};

inline void FillStack(const SeenStack& seen, int32_t pid, v1::ProcessStack* stack) {
  stack->set_pid(pid);
  stack->set_cpu_seconds(seen.cpu_seconds);
  stack->set_moved_bytes(0);
  v1::ThreadStack* thread = stack->add_threads();
  thread->set_tid(pid);
  thread->set_name("python3");
  thread->set_state(seen.state);
  thread->set_switches(seen.switches);
  for (const SeenFrame& frame : seen.frames) {
    v1::Frame* added = thread->add_frames();
    added->set_function(frame.function);
    added->set_python(*frame.file != '\0');
    added->set_file(frame.file);
    added->set_line(frame.line);
    if (*frame.file == '\0') added->set_module("/usr/lib/libtorch_cpu.so");
  }
}

struct LookBuilder {
  explicit LookBuilder(const std::string& host = "node-1") {
    look.set_host(host);
    look.set_begun_ns(kLookBegunNs);
    look.set_ended_ns(kLookBegunNs + 7 * kSecond);
    look.set_is_whole(true);
  }

  // A rank with one sample for each of `seen`, evenly over five seconds.
  v1::ProcessLook* Add(int32_t rank, const std::vector<SeenStack>& seen, int32_t world_size = -1) {
    v1::ProcessLook* process = look.add_processes();
    v1::ProcessUpdate* update = process->mutable_process();
    const int32_t pid = kFirstPid + look.processes_size() - 1;
    update->set_pid(pid);
    update->set_start_time(77);
    update->mutable_identity()->set_global_rank(rank);
    update->mutable_identity()->set_world_size(world_size);
    update->mutable_identity()->set_uid(1000);
    update->mutable_evidence()->set_liveness(v1::Evidence::ALIVE);
    update->mutable_evidence()->set_state("S");
    update->mutable_evidence()->set_exit_code(-1);
    process->set_found_by("RANK");
    process->set_script("train.py");
    Mark(process, "rendezvous", "127.0.0.1:29500", true);
    Mark(process, "launcher", "3999", true);
    for (size_t i = 0; i < seen.size(); ++i) {
      v1::StackSample* sample = process->add_samples();
      const auto apart = static_cast<int64_t>(seen.size() > 1 ? seen.size() - 1 : 1);
      sample->set_taken_ns(kLookBegunNs + kSecond + 5 * kSecond * static_cast<int64_t>(i) / apart);
      FillStack(seen[i], pid, sample->mutable_stack());
    }
    return process;
  }

  static void Mark(v1::ProcessLook* process, const std::string& kind, const std::string& value,
                   bool of_host) {
    v1::JobMark* mark = process->add_marks();
    mark->set_kind(kind);
    mark->set_value(value);
    mark->set_of_host(of_host);
  }

  v1::HostLook look;
};

}  // namespace rollcall
