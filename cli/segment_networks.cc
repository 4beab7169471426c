// SPDX-License-Identifier: Apache-2.0
#include "cli/segment_networks.h"

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "agent/link/network_samples.h"
#include "agent/segments/segment_reader.h"
#include "daemon/agents/network_samples.h"
#include "daemon/agents/stack_limits.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;

using Owner = std::tuple<std::string, int32_t, uint64_t>;  // host, pid, start time

using Networks = std::map<Owner, std::vector<NetworkSnapshot>>;

void ReadNetworksIn(const std::string& folder, const std::vector<uint64_t>& communicators,
                    Networks* networks) {
  std::error_code error;
  for (auto at = fs::directory_iterator(folder, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    if (!IsSegmentName(at->path().filename())) continue;
    const auto reader = SegmentReader::Open(at->path());
    if (!reader.ok()) continue;
    std::vector<NetworkSnapshot> read = (*reader)->ReadNetwork(nullptr, 0, &communicators);
    if (read.empty()) continue;
    const auto snapshot = (*reader)->Read();
    if (!snapshot.ok()) continue;
    const std::string& host = snapshot->host.empty() ? folder : snapshot->host;
    (*networks)[{host, snapshot->pid, snapshot->start_time}] = std::move(read);
  }
}

std::vector<NetworkSample> ToSamples(const std::vector<NetworkSnapshot>& read,
                                     const std::vector<uint64_t>& communicators, int32_t process,
                                     int64_t last_ns) {
  v1::ProcessStack stack;
  for (const NetworkSnapshot& one : read) *stack.add_network() = ToProto(one, last_ns);
  LimitStack(&stack);
  return ReadNetworkSamples(stack, communicators, process, last_ns);
}

}  // namespace

void AddSegmentNetworks(const std::set<std::string>& folders,
                        const std::vector<uint64_t>& communicators, int64_t last_ns,
                        JobState* state) {
  Networks networks;
  for (const std::string& folder : folders) ReadNetworksIn(folder, communicators, &networks);
  for (size_t i = 0; i < state->processes.size(); ++i) {
    Process& process = state->processes[i];
    const auto read = networks.find({process.host, process.pid, process.start_time});
    if (read == networks.end()) continue;
    process.network = std::make_shared<const std::vector<NetworkSample>>(
        ToSamples(read->second, communicators, static_cast<int32_t>(i), last_ns));
    process.network_ns = last_ns;
  }
}

}  // namespace rollcall
