// SPDX-License-Identifier: Apache-2.0
// Network cards (Documentation/ABI/testing/sysfs-class-net-statistics) and TCP.
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/host_facts/device_names.h"
#include "agent/host_facts/probes.h"
#include "agent/host_facts/samples.h"

namespace rollcall {
namespace {

// Packets that the card lost. rx_dropped also counts packets that no program on the host wants.
constexpr const char* kLost[] = {"rx_errors", "rx_crc_errors", "rx_missed_errors", "rx_fifo_errors",
                                 "tx_errors", "tx_dropped",    "tx_carrier_errors"};
constexpr char kTcp[] = "tcp";

Samples NetworkSample(const HostFiles& files, const std::vector<std::string>& interfaces) {
  Samples samples;
  for (const std::string& name : interfaces) {
    for (const char* counter : kLost) {
      const auto value = files.Number(absl::StrCat(kNetFolder, "/", name, "/statistics/", counter));
      if (value.has_value()) samples[{name, counter}] = *value;
    }
  }
  return samples;
}

// The column RetransSegs of /proc/net/snmp, whose first line for TCP has the names.
int64_t TcpRetransmits(const HostFiles& files) {
  std::istringstream text(files.Read("/proc/net/snmp").value_or(""));
  std::string line, name, value;
  std::vector<std::string> lines;
  while (std::getline(text, line)) {
    if (line.rfind("Tcp:", 0) == 0) lines.push_back(line);
  }
  if (lines.size() != 2) return 0;
  std::istringstream names(lines[0]), values(lines[1]);
  while (names >> name && values >> value) {
    if (name == "RetransSegs") return std::strtoll(value.c_str(), nullptr, 10);
  }
  return 0;
}

// An interface that is switched off has no carrier to read.
void AddLinks(const HostFiles& files, const std::vector<std::string>& interfaces,
              std::vector<Fact>* facts) {
  for (const std::string& name : interfaces) {
    const auto carrier = files.Number(absl::StrCat(kNetFolder, "/", name, "/carrier"));
    if (!carrier.has_value()) continue;
    facts->push_back({HostFactKind::kNetLink, name, *carrier,
                      files.Read(absl::StrCat(kNetFolder, "/", name, "/operstate")).value_or(""), 0,
                      0});
  }
}

}  // namespace

ProbeResult ProbeNetwork(const ProbeInput& input) {
  ProbeResult result;
  const std::vector<std::string> interfaces = PhysicalInterfaces(input.files);
  Samples before = NetworkSample(input.files, interfaces);
  before[{"", kTcp}] = TcpRetransmits(input.files);
  input.pause(input.interval_ns);
  Samples after = NetworkSample(input.files, interfaces);
  after[{"", kTcp}] = TcpRetransmits(input.files);
  for (const auto& [subject, growth] : GrowthBetween(before, after)) {
    const HostFactKind kind =
        subject.empty() ? HostFactKind::kTcpRetransmits : HostFactKind::kNetDrops;
    result.facts.push_back({kind, subject, growth.total, subject.empty() ? "" : growth.text, 0, 0});
  }
  AddLinks(input.files, interfaces, &result.facts);
  return result;
}

}  // namespace rollcall
