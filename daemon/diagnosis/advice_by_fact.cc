// SPDX-License-Identifier: Apache-2.0
// FactAdvice(): for what is known of the culprits' processes.
#include <algorithm>
#include <iterator>

#include "daemon/diagnosis/advice.h"
#include "daemon/diagnosis/advice_patterns.h"

namespace rollcall {
namespace {

bool Stopped(const Verdict& v) {
  return AnyCulprit(v, [](const Culprit& c) { return c.state == 'T' || c.state == 't'; });
}

bool CapturesInstead(const Verdict& v) { return IsAbsence(v) && v.captured; }

bool KilledHard(const Verdict& v) {
  return Is(v, Cause::kRankDied) &&
         AnyCulprit(v, [](const Culprit& c) { return c.exit_signal == 9 || c.exit_code == 137; });
}

bool Crashed(const Verdict& v) {
  return Is(v, Cause::kRankDied) && AnyCulprit(v, [](const Culprit& c) {
           constexpr int kFaults[] = {4, 6, 7, 8, 11};
           return std::any_of(std::begin(kFaults), std::end(kFaults), [&](int signal) {
             return c.exit_signal == signal || c.exit_code == 128 + signal;
           });
         });
}

bool RaisedAnException(const Verdict& v) {
  return (Is(v, Cause::kRankDied) || Is(v, Cause::kRankExited)) &&
         AnyCulprit(v, [](const Culprit& c) {
           return !c.error.empty() || (c.exit_signal == 0 && c.exit_code > 0 && c.exit_code < 128);
         });
}

}  // namespace

const std::vector<AdviceEntry>& FactAdvice() {
  static const auto* const kTable = new std::vector<AdviceEntry>{
      {"stopped-process", Stopped, "a culprit is in state T or t",
       "A stopped process runs none of its threads. A person pressed Ctrl-Z, sent SIGSTOP or "
       "attached a debugger, or the batch system suspended the job.",
       "The process is stopped. Resume it with `kill -CONT PID`, or detach the debugger."},
      {"captured-on-some-ranks", CapturesInstead,
       "the others made the call, but a culprit captured it into a CUDA graph",
       "A captured call runs only when the program launches the graph, and the others wait for it.",
       "All ranks must capture a call, or none. Check why that rank captures: a batch size without "
       "a graph, a skipped warm-up, or a flag that is set on one host only."},
      {"killed", KilledHard, "a culprit was killed by signal 9",
       "The sender is nearly always the kernel's out-of-memory killer, a container's memory limit "
       "or the batch system.",
       "SIGKILL ended the process. Look for the out-of-memory killer in `dmesg`, and check the "
       "memory limit of the container or batch system. The usual reason: every rank loads the "
       "model at the same time."},
      {"crashed", Crashed, "a culprit died of a fault or an abort",
       "The reason is a segmentation fault, a failed assertion, or a watchdog that aborts its "
       "process.",
       "The process crashed. Check the end of its log and the core dump (`coredumpctl`; `ulimit -c "
       "unlimited` for the next run). An abort is often the timeout of another library."},
      {"raised-an-exception", RaisedAnException, "a culprit ended with an error code",
       "An exception ends one rank. Nothing informs the others, and they wait in the next "
       "collective.",
       "Read the last traceback in that rank's log first. Let the launcher end the job when one "
       "rank fails (torchrun does), so that no rank waits."},
  };
  return *kTable;
}

}  // namespace rollcall
