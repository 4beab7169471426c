// SPDX-License-Identifier: Apache-2.0
// The parts of sentences: ranks, calls, communicators, results, counts and durations as text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "daemon/model/verdict.h"

namespace rollcall {

// Culprit::ending of a process whose exit status is unknown.
inline constexpr char kEndedUnknown[] = "ended (exit status unknown)";
inline constexpr char kNoProcess[] = "has no process (it has ended, or was never started)";

// Culprit::ending of a process that exited by itself, with an unknown exit code.
inline constexpr char kExitedUnknown[] = "exited, exit code unknown";

// Culprit::ending of a rank that lives and is leaving the communicator.
inline constexpr char kFinalizing[] = "inside CommFinalize or CommDestroy";

// `one` for a count of 1, else `many`: PluralForm(n, "waits", "wait").
const char* PluralForm(size_t count, const char* one, const char* many);

// "1 call", "24 calls".
std::string CountInWords(uint64_t count, const char* one, const char* many);

// "0-2,4-63"; without duplicates.
std::string RankList(std::vector<int32_t> ranks);

// "rank 3", "ranks 0-2,4", "ranks 0,2,4,6,8,10,12,14 and 49992 more". Names a handful if the list
// would be long.
std::string RanksInWords(std::vector<int32_t> ranks);

// "node-7", "node-7, node-9", "1500 hosts, among them node-7, node-9".
std::string HostsInWords(const std::set<std::string>& hosts);
inline constexpr size_t kMostHosts = 3;  // HostsInWords() names all of them

// "AllReduce"; "call with op code 77" for an operation that is not in calls.def.
std::string OpInWords(Op op);

// The operation that matches a send, a receive or a wait for a signal: "receive".
const char* OtherEndInWords(Op op);

// "" for kNoDtype; "dtype 14" for an unknown number.
std::string DtypeInWords(uint8_t dtype);

std::string ReductionInWords(uint8_t reduction);

// "AllReduce(float32 x 1048576, sum)".
std::string CallInWords(const CallArgs& call);

// "communicator "dp"", "gloo communicator "dp""; without a name the first eight digits of the id:
// "communicator a91f0c22".
std::string CommunicatorInWords(uint64_t id, const std::string& name,
                                CommKind kind = CommKind::kNccl);

// Returns the 16 hexadecimal digits of an id.
std::string IdInHex(uint64_t id);

// "step 812", "step 812 (validation)".
std::string StepInWords(int64_t step, const std::string& phase);

// "ncclSystemError"; "ncclResult_t 17" for an unknown number.
std::string ResultInWords(int32_t code);

// "0.4 s", "48 s", "4 min 10 s", "3 h 5 min".
std::string DurationInWords(int64_t ns);

// "140 ms"; whole seconds from 10 s on.
std::string MillisecondsInWords(int64_t ns);

}  // namespace rollcall
