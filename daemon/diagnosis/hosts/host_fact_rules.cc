// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/hosts/host_fact_rules.h"

#include <algorithm>
#include <iterator>

namespace rollcall {
namespace {

using K = HostFactKind;
using R = HostSignRule;
using W = HostSignWeight;
using P = HostPeers;

constexpr int64_t kActive = 4;  // the kernel's number of a port that works

constexpr HostFactRule kRules[] = {
    {K::kLinkDown, R::kAlways, W::kStalls, P::kHosts, 0, "check-link"},
    {K::kLinkFlap, R::kAlways, W::kStalls, P::kHosts, 0, "check-link"},
    {K::kNicError, R::kAlways, W::kStalls, P::kHosts, 0, "check-link"},
    {K::kXid, R::kAlways, W::kStalls, P::kHosts, 0, "gpu-fault"},
    {K::kSxid, R::kAlways, W::kStalls, P::kHosts, 0, "gpu-fault"},
    {K::kNvlinkMessage, R::kAlways, W::kStalls, P::kHosts, 0, "gpu-fault"},
    {K::kPcieError, R::kAlways, W::kExplains, P::kHosts, 0, "hardware-error"},
    {K::kMachineCheck, R::kAlways, W::kExplains, P::kHosts, 0, "hardware-error"},
    {K::kOomKill, R::kAlways, W::kExplains, P::kHosts, 0, "out-of-memory"},
    {K::kIoError, R::kAlways, W::kExplains, P::kHosts, 0, "disk-error"},
    {K::kLockup, R::kAlways, W::kStalls, P::kHosts, 0, "hardware-error"},
    {K::kHungTask, R::kAlways, W::kExplains, P::kHosts, 0, "blocked-in-kernel"},
    {K::kServerSilent, R::kAlways, W::kExplains, P::kHosts, 0, "file-server-silent"},

    {K::kGpu, R::kNever, W::kContext, P::kGpus, 0, ""},
    {K::kGpuProcess, R::kNever, W::kContext, P::kGpus, 0, ""},
    {K::kGpuLost, R::kAlways, W::kStalls, P::kGpus, 0, "gpu-fault"},
    {K::kGpuEcc, R::kMore, W::kExplains, P::kGpus, 1, "gpu-fault"},
    {K::kGpuPagesPending, R::kMore, W::kContext, P::kGpus, 1, "gpu-fault"},
    {K::kGpuThrottled, R::kMore, W::kContext, P::kGpus, 1, "gpu-slow"},
    {K::kGpuPcieWidth, R::kLess, W::kContext, P::kGpus, 100, "gpu-slow"},
    {K::kGpuPcieReplays, R::kMore, W::kContext, P::kGpus, 10, "gpu-slow"},
    {K::kNvlinkState, R::kLess, W::kExplains, P::kGpus, 100, "gpu-fault"},
    {K::kNvlinkErrors, R::kMore, W::kExplains, P::kGpus, 1, "gpu-fault"},

    {K::kIbPort, R::kLess, W::kStalls, P::kSubject, 100, "check-link"},
    {K::kIbRate, R::kLess, W::kContext, P::kSubject, 100, "check-link"},
    {K::kIbLinkErrors, R::kMore, W::kExplains, P::kPorts, 1, "check-link"},
    {K::kIbRetransmits, R::kMore, W::kExplains, P::kPorts, 1, "check-link"},
    {K::kIbLinkDowned, R::kMore, W::kContext, P::kPorts, 1, "check-link"},

    {K::kNetLink, R::kLess, W::kContext, P::kSubject, 100, "check-link"},
    {K::kNetDrops, R::kMore, W::kContext, P::kHosts, 10, "check-link"},
    {K::kTcpRetransmits, R::kMore, W::kContext, P::kHosts, 20, "check-link"},

    {K::kCgroupFrozen, R::kAlways, W::kStalls, P::kHosts, 0, "frozen-group"},
    {K::kCgroupThrottled, R::kMore, W::kExplains, P::kHosts, 300, "cpu-held-back"},
    {K::kCgroupMemory, R::kMore, W::kExplains, P::kHosts, 1, "out-of-memory"},
    {K::kCgroupOom, R::kMore, W::kContext, P::kHosts, 1, "out-of-memory"},
    {K::kMemoryPressure, R::kMore, W::kExplains, P::kHosts, 10, "out-of-memory"},
    {K::kIoPressure, R::kMore, W::kContext, P::kHosts, 30, "disk-error"},
    {K::kCpuPressure, R::kMore, W::kContext, P::kHosts, 50, "cpu-held-back"},
    {K::kSwapping, R::kMore, W::kExplains, P::kHosts, 1000, "out-of-memory"},
    {K::kMemoryLow, R::kLess, W::kContext, P::kHosts, 5, "out-of-memory"},

    {K::kTaskBlocked, R::kAlways, W::kExplains, P::kHosts, 0, "blocked-in-kernel"},

    {K::kMount, R::kNever, W::kContext, P::kHosts, 0, ""},
    {K::kFileSystemSilent, R::kAlways, W::kExplains, P::kHosts, 0, "file-server-silent"},
    {K::kDiskFull, R::kAlways, W::kExplains, P::kHosts, 0, "disk-full"},

    {K::kClockUnsynchronized, R::kMore, W::kContext, P::kHosts, 1, ""},
    {K::kCpuSpeed, R::kLess, W::kContext, P::kHosts, 60, "cpu-held-back"},
    {K::kCpuThrottled, R::kMore, W::kContext, P::kHosts, 1, "cpu-held-back"},

    {K::kProbeHangs, R::kAlways, W::kExplains, P::kHosts, 0, "blocked-in-kernel"},
    {K::kUnknown, R::kNever, W::kContext, P::kHosts, 0, ""},
};

constexpr bool IsInOrder() {
  for (size_t i = 0; i < std::size(kRules); ++i) {
    if (static_cast<size_t>(kRules[i].kind) != i) return false;
  }
  return std::size(kRules) == kHostFactKinds + 1;
}
static_assert(IsInOrder(), "a row for each kind, in the order of host_facts.def");

}  // namespace

const HostFactRule& RuleOf(HostFactKind kind) { return kRules[static_cast<size_t>(kind)]; }

bool IsWorthALook(HostFactKind kind, int64_t value) {
  const HostFactRule& rule = RuleOf(kind);
  if (kind == HostFactKind::kUnknown || rule.rule == HostSignRule::kAlways) return true;
  if (rule.rule == HostSignRule::kMore) return value >= rule.least;
  if (kind == HostFactKind::kIbPort) return value != kActive;
  return kind == HostFactKind::kNetLink && value == 0;
}

}  // namespace rollcall
