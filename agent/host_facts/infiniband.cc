// SPDX-License-Identifier: Apache-2.0
// Ports of InfiniBand and RoCE (Documentation/ABI/stable/sysfs-class-infiniband).
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/host_facts/device_names.h"
#include "agent/host_facts/probes.h"
#include "agent/host_facts/samples.h"

namespace rollcall {
namespace {

struct Counter {
  HostFactKind kind;
  const char* file;  // below the port's folder
};

constexpr Counter kCounters[] = {
    {HostFactKind::kIbLinkErrors, "counters/symbol_error"},
    {HostFactKind::kIbLinkErrors, "counters/link_error_recovery"},
    {HostFactKind::kIbLinkErrors, "counters/link_downed"},
    {HostFactKind::kIbLinkErrors, "counters/port_rcv_errors"},
    {HostFactKind::kIbLinkErrors, "counters/port_rcv_remote_physical_errors"},
    {HostFactKind::kIbLinkErrors, "counters/local_link_integrity_errors"},
    {HostFactKind::kIbLinkErrors, "counters/excessive_buffer_overrun_errors"},
    {HostFactKind::kIbLinkErrors, "counters/port_xmit_discards"},
    {HostFactKind::kIbRetransmits, "hw_counters/local_ack_timeout_err"},
    {HostFactKind::kIbRetransmits, "hw_counters/packet_seq_err"},
    {HostFactKind::kIbRetransmits, "hw_counters/out_of_sequence"},
    {HostFactKind::kIbRetransmits, "hw_counters/rnr_nak_retry_err"},
    {HostFactKind::kIbRetransmits, "hw_counters/roce_adp_retrans"},
    {HostFactKind::kIbRetransmits, "hw_counters/roce_adp_retrans_to"},
    {HostFactKind::kIbRetransmits, "hw_counters/req_transport_retries_exceeded"},
    {HostFactKind::kIbRetransmits, "hw_counters/req_cqe_error"},
    {HostFactKind::kIbRetransmits, "hw_counters/resp_cqe_error"},
    {HostFactKind::kIbRetransmits, "hw_counters/retrans_pkts"},
};

struct Port {
  std::string folder;
  std::string subject;
};

std::vector<Port> Ports(const HostFiles& files) {
  std::vector<Port> ports;
  for (const std::string& device : files.List(kInfinibandFolder)) {
    const std::string folder = absl::StrCat(kInfinibandFolder, "/", device, "/ports");
    for (const std::string& port : files.List(folder)) {
      ports.push_back({absl::StrCat(folder, "/", port), absl::StrCat(device, " port ", port)});
    }
  }
  return ports;
}

// "4: ACTIVE" has the number 4 and the name "ACTIVE".
std::string NameBehindColon(const std::string& text) {
  const size_t colon = text.find(": ");
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

void AddState(const HostFiles& files, const Port& port, std::vector<Fact>* facts) {
  const auto state = files.Read(port.folder + "/state");
  if (!state.has_value()) return;
  Fact fact;
  fact.kind = HostFactKind::kIbPort;
  fact.subject = port.subject;
  fact.value = files.Number(port.folder + "/state").value_or(0);
  fact.text = NameBehindColon(*state);
  const auto physical = files.Read(port.folder + "/phys_state");
  if (physical.has_value()) absl::StrAppend(&fact.text, ", ", NameBehindColon(*physical));
  facts->push_back(fact);
  const auto rate = files.Number(port.folder + "/rate");
  if (!rate.has_value()) return;
  fact.kind = HostFactKind::kIbRate;
  fact.value = *rate;
  fact.text = files.Read(port.folder + "/rate").value_or("");
  facts->push_back(fact);
  const int64_t downed = files.Number(port.folder + "/counters/link_downed").value_or(0);
  if (downed <= 0) return;
  fact.kind = HostFactKind::kIbLinkDowned;
  fact.value = downed;
  fact.text = "";
  facts->push_back(fact);
}

Samples Sample(const HostFiles& files, const std::vector<Port>& ports, HostFactKind kind) {
  Samples samples;
  for (const Port& port : ports) {
    for (const Counter& counter : kCounters) {
      if (counter.kind != kind) continue;
      const auto value = files.Number(absl::StrCat(port.folder, "/", counter.file));
      const std::string file = counter.file;
      if (value.has_value()) samples[{port.subject, file.substr(file.find('/') + 1)}] = *value;
    }
  }
  return samples;
}

}  // namespace

ProbeResult ProbeInfiniband(const ProbeInput& input) {
  ProbeResult result;
  const std::vector<Port> ports = Ports(input.files);
  if (ports.empty()) {
    result.outcome = ProbeOutcome::kAbsent;
    result.note = "no InfiniBand or RoCE device";
    return result;
  }
  constexpr HostFactKind kKinds[] = {HostFactKind::kIbLinkErrors, HostFactKind::kIbRetransmits};
  std::vector<Samples> before;
  for (const HostFactKind kind : kKinds) before.push_back(Sample(input.files, ports, kind));
  input.pause(input.interval_ns);
  for (size_t i = 0; i < before.size(); ++i) {
    for (auto& [subject, growth] :
         GrowthBetween(before[i], Sample(input.files, ports, kKinds[i]))) {
      result.facts.push_back({kKinds[i], subject, growth.total, growth.text, 0, 0});
    }
  }
  for (const Port& port : ports) AddState(input.files, port, &result.facts);
  return result;
}

}  // namespace rollcall
