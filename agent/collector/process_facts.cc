// SPDX-License-Identifier: Apache-2.0
#include "agent/collector/process_facts.h"

#include <unistd.h>

#include <utility>

#include "agent/processes/freezer.h"
#include "agent/segments/printable.h"
#include "base/durations.h"
#include "base/steady_clock.h"

namespace rollcall {
namespace {

constexpr char kHeldByTracer = 't';           // in /proc
constexpr char kFrozen[] = "__refrigerator";  // the kernel's name for this wait

void SetUse(uint64_t cpu_ticks, uint64_t resident_bytes, v1::Evidence* evidence) {
  const double ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  evidence->set_cpu_seconds(static_cast<double>(cpu_ticks) / ticks_per_second);
  evidence->set_memory_bytes(resident_bytes);
}

}  // namespace

ProcessReading ReadFromProc(const std::string& proc_root, pid_t pid) {
  ProcessReading reading;
  auto stat = ReadProcStat(proc_root, pid);
  if (!stat.ok()) return reading;
  reading.stat = *std::move(stat);
  const auto main = ReadProcThread(proc_root, pid, pid);
  const bool has_tracer = main.ok() && main->tracer != 0;
  const bool is_own = has_tracer && IsOwnOrEndedTracer(proc_root, main->tracer);
  reading.traced = has_tracer && !is_own;
  reading.own_stop = is_own && reading.stat->state == kHeldByTracer;
  reading.wait_channel = main.ok() ? Printable(main->wchan.c_str(), 64) : "";
  // The freezer of version 1 leaves the name of what it waited in before.
  const bool is_frozen = reading.stat->state == 'D' && IsFrozenByGroup(proc_root, pid);
  if (is_frozen) reading.wait_channel = kFrozen;
  return reading;
}

bool ProcessState::IsDue(int64_t now_ns) const {
  constexpr int64_t kReadEvery = kSecond;
  return read_ns_ == 0 || now_ns - read_ns_ >= kReadEvery;
}

void ProcessState::Take(int64_t now_ns, const ProcessReading& reading) {
  missing_ = !reading.stat.has_value();
  if (missing_) return;
  const ProcStat& stat = *reading.stat;
  cpu_moving_ = read_ns_ != 0 && stat.cpu_ticks > cpu_ticks_;
  cpu_ticks_ = stat.cpu_ticks;
  resident_bytes_ = stat.resident_bytes;
  if (stat.virtual_bytes > 0) had_memory_ns_ = now_ns;
  read_ns_ = now_ns;
  // A program that takes stacks, like this agent, holds a thread for a moment. A stop counts only
  // if it lasts.
  const bool is_stop = stat.state == kHeldByTracer && !reading.own_stop;
  const bool lasts = std::exchange(was_at_stop_, is_stop);
  if (stat.state == kHeldByTracer && !(is_stop && lasts)) return;
  state_ = stat.state;
  traced_ = reading.traced;
  wait_channel_ = reading.wait_channel;
}

CpuUse ProcessState::cpu_use() const {
  const auto ticks_per_second = static_cast<int64_t>(sysconf(_SC_CLK_TCK));
  return {static_cast<int64_t>(cpu_ticks_) * kSecond / ticks_per_second, state_};
}

void ProcessState::Report(v1::Evidence* evidence) const {
  evidence->set_state(std::string(1, state_));
  evidence->set_cpu_moving(cpu_moving_);
  evidence->set_traced(traced_);
  evidence->set_wait_channel(wait_channel_);
  SetUse(cpu_ticks_, resident_bytes_, evidence);
}

v1::Evidence EvidenceNow(const std::string& proc_root, pid_t pid, uint64_t start_time) {
  const ProcessReading reading = ReadFromProc(proc_root, pid);
  v1::Evidence evidence;
  evidence.set_exit_code(-1);
  const bool is_same = reading.stat.has_value() && reading.stat->start_time == start_time;
  if (!is_same || IsDead(reading.stat->state)) {
    evidence.set_liveness(v1::Evidence::ENDED);
    evidence.set_ended_ns(SteadyNs());
    return evidence;
  }
  evidence.set_liveness(v1::Evidence::ALIVE);
  evidence.set_state(std::string(1, reading.own_stop ? 'S' : reading.stat->state));
  evidence.set_traced(reading.traced);
  evidence.set_wait_channel(reading.wait_channel);
  SetUse(reading.stat->cpu_ticks, reading.stat->resident_bytes, &evidence);
  return evidence;
}

void SetLaunch(const LaunchFacts& facts, v1::Identity* identity) {
  if (facts.attempt >= 0) identity->set_attempt(facts.attempt);
  identity->set_restarts(facts.restarts);
  identity->set_launch(facts.launch);
  if (facts.may_rejoin) identity->set_may_rejoin(true);
  identity->set_inner_pid(facts.inner_pid);
  if (facts.uid >= 0) identity->set_uid(static_cast<uint32_t>(facts.uid));
  if (!facts.tenant.empty()) identity->set_tenant(facts.tenant);
  if (!facts.stacks_off.empty()) identity->set_stacks_off(facts.stacks_off);
#define PROCESS_PLACE(name) identity->set_##name(facts.name);
#define PROCESS_DETAIL(name) identity->set_##name(facts.name);
#include "proto/facts.def"
}

}  // namespace rollcall
