// SPDX-License-Identifier: Apache-2.0
// The limits of what agents may send. docs/limits.md, "Limits", lists them for operators.
//
// The daemon drops what exceeds a limit, or cuts it if it is a text. It counts what it dropped
// (rollcall_daemon_dropped_total) and logs it at most once a minute.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace rollcall {
namespace limits {

// The library's table has room for this many at a time (segment::kCommCapacity).
inline constexpr size_t kCommunicatorsOfProcess = 1024;
// As many as the largest job has ranks: one group of each kind for each rank.
inline constexpr size_t kCommunicatorsOfJob = size_t{1} << 18;
inline constexpr size_t kProcessesOfJob = size_t{1} << 18;
inline constexpr size_t kAgentsOfJob = size_t{1} << 17;  // runs of agents; see JobModel::AddAgent()
inline constexpr size_t kAttemptsOfJob = 64;
// Processes of one user in jobs of one name that other users began. A job in containers may have
// several users, each with some ranks.
inline constexpr size_t kGuestsOfUser = 256;
// Ranks of communicators, over all jobs: 1.5 GB without their records.
inline constexpr size_t kMembers = 4'000'000;
inline constexpr size_t kGrownIdsOfJob = size_t{1} << 16;
// Peers of one rank whose sends and receives the daemon counts. A rank beyond it has no exact
// counts, and the rules treat it so.
inline constexpr size_t kPeersOfMember = size_t{1} << 14;
inline constexpr size_t kPeersOfUpdate = 256;   // and tags; the library has room for 170
inline constexpr size_t kBlockedCalls = 1024;   // the library has room for 128
inline constexpr size_t kAwaitedKeys = 8;       // of stores, of a process; the library has as many
inline constexpr size_t kCallers = 16;          // of a process; an agent names as many
inline constexpr size_t kThreadPlaces = 8;      // of a process
inline constexpr size_t kKeepers = 2;           // of a process
inline constexpr size_t kChildrenAtWork = 4;    // of a process
inline constexpr size_t kOtherEnds = 8;         // of a thread
inline constexpr size_t kGraphLaunches = 1024;  // in one update; the library has room for 960
// Limit of one communicator in one message: what its part of a segment holds
// (segment::kRingCapacity, segment::kCheckpointCapacity).
inline constexpr size_t kRecordsOfUpdate = 512;
inline constexpr size_t kCheckpointsOfUpdate = 128;
inline constexpr size_t kGrownIdsOfUpdate = 16;  // the library has room for 2
inline constexpr size_t kSites = 1024;           // the library's table of lines has this length
inline constexpr size_t kSiteBytes = size_t{256} << 20;  // of all jobs
// Shapes of tensors that a job is the first to have, so that one job cannot fill the store.
inline constexpr size_t kShapesOfJob = size_t{1} << 14;
inline constexpr size_t kShapes = size_t{1} << 18;  // of all jobs, until the daemon ends
// Limit of texts about processes and names of communicators, of all jobs.
inline constexpr size_t kTextBytes = size_t{512} << 20;
// Limit of transfers over the network, of a job: 48 MiB. A rank has some dozens.
inline constexpr size_t kNetworkStatesOfJob = size_t{1} << 20;
inline constexpr size_t kHostsWithFacts = 1024;  // of a job
inline constexpr size_t kHosts = 200'000;        // with a count of dropped ticks
// Limit of messages that wait as bytes until they may be parsed, of all agents. Only messages of
// more than kManyUnparsedBytes count: agents send pieces of about one MiB.
inline constexpr size_t kManyUnparsedBytes = size_t{2} << 20;
inline constexpr size_t kUnparsedBytes = size_t{512} << 20;

// How old a time can be that an agent claims: no process of a job runs for longer. 366 days.
inline constexpr int64_t kOldestNs = int64_t{366} * 24 * 3600 * 1'000'000'000;
// Limits of a process: more than any host has. 1 PiB; 65,536 cores for as long.
inline constexpr uint64_t kMemoryOfProcess = uint64_t{1} << 50;
inline constexpr double kCpuSecondsOfProcess = 65536.0 * 366 * 24 * 3600;

// Lengths of texts, in bytes.
inline constexpr size_t kName = 255;     // of a job, tenant, host, communicator or phase
inline constexpr size_t kAgentId = 512;  // of a run of an agent
inline constexpr size_t kSite = 512;
inline constexpr size_t kShape = 160;
inline constexpr size_t kThreadName = 63;
inline constexpr size_t kClaimedSizes = 1024;  // of one communicator
inline constexpr size_t kRivals = 16;          // of one communicator
inline constexpr size_t kError = 1024;
inline constexpr size_t kCommand = 4096;      // and other texts of a process
inline constexpr size_t kStackWords = 65536;  // the functions of all threads

// Defaults of rollcalld's flags.
inline constexpr size_t kJobs = 10'000;        // --max-jobs
inline constexpr size_t kProcesses = 500'000;  // --max-processes
inline constexpr size_t kStreams = 20'000;     // --max-streams
// Many hosts may share an address, and many `rollcall run` a login node.
inline constexpr size_t kStreamsOfPeer = 1024;             // --max-streams-per-peer
inline constexpr size_t kAlertsAnHour = 6;                 // --alerts-per-hour, of a job
inline constexpr size_t kIncidentsAnHour = 60;             // --incidents-per-hour, of a job
inline constexpr size_t kRecordBytes = size_t{512} << 20;  // --records-memory

}  // namespace limits

// What the daemon drops; see DroppedName().
enum class Dropped : uint8_t {
  kJobs,
  kAttempts,
  kProcesses,
  kAgents,
  kCommunicators,
  kMembers,
  kIds,
  kPeers,
  kBlockedCalls,
  kGraphLaunches,
  kSites,
  kShapes,
  kTexts,
  kHosts,
  kTenants,  // processes of tenants that the agent may not write
  kStreams,
  kIncidents,
  kAlerts,     // held back
  kSegments,   // by agents
  kHostFacts,  // requests; and facts of hosts of a job
  kRecords,    // rows and checkpoints of one message
  kSizes,      // that ranks claim for one communicator
  kStacks,     // requests
  kViewers,    // of live changes of the page
  kTimes,      // that cannot be: before the process began, or later than now
  kNumbers,    // that cannot be: ranks, sizes, CPU time, memory
};
inline constexpr size_t kDroppedKinds = static_cast<size_t>(Dropped::kNumbers) + 1;
using DroppedCounts = std::array<uint64_t, kDroppedKinds>;

// The label `what` of rollcall_daemon_dropped_total.
inline const char* DroppedName(Dropped what) {
  constexpr const char* kNames[kDroppedKinds] = {
      "jobs",     "attempts",   "processes",     "agents",         "communicators", "ranks",
      "ids",      "peers",      "blocked_calls", "graph_launches", "sites",         "shapes",
      "texts",    "hosts",      "tenants",       "streams",        "incidents",     "alerts",
      "segments", "host_facts", "records",       "sizes",          "stacks",        "viewers",
      "times",    "numbers"};
  return kNames[static_cast<size_t>(what)];
}

}  // namespace rollcall
