// SPDX-License-Identifier: Apache-2.0
#include "agent/collector/process_facts.h"

#include <unistd.h>

#include <utility>

#include "agent/processes/freezer.h"
#include "agent/segments/segment_reader.h"
#include "base/steady_clock.h"

namespace rollcall {
namespace {

constexpr char kHeldByTracer = 't';           // in /proc
constexpr char kFrozen[] = "__refrigerator";  // the kernel's name for this wait

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
  const double ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  evidence.set_liveness(v1::Evidence::ALIVE);
  evidence.set_state(std::string(1, reading.own_stop ? 'S' : reading.stat->state));
  evidence.set_traced(reading.traced);
  evidence.set_wait_channel(reading.wait_channel);
  evidence.set_cpu_seconds(static_cast<double>(reading.stat->cpu_ticks) / ticks_per_second);
  evidence.set_memory_bytes(reading.stat->resident_bytes);
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
