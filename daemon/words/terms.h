// SPDX-License-Identifier: Apache-2.0
// The terms that sentences are made of: ranks, calls, communicators, results and durations as text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/model/verdict.h"

namespace rollcall {

// Culprit::ending of a process whose exit status is unknown.
inline constexpr char kEndedUnknown[] = "ended (exit status unknown)";

// Culprit::ending of a rank that lives and is leaving the communicator.
inline constexpr char kFinalizing[] = "inside CommFinalize or CommDestroy";

// "0-2,4-63"; without duplicates.
std::string RankList(std::vector<int32_t> ranks);

// "rank 3", "ranks 0-2,4".
std::string RanksInWords(std::vector<int32_t> ranks);

// "AllReduce"; "call with op code 77" for an operation outside our table.
std::string OpInWords(Op op);

// What would match a send, a receive or a wait for a signal: "receive".
const char* OtherEndInWords(Op op);

// "" for kNoDtype; "dtype 14" for an unknown number.
std::string DtypeInWords(uint8_t dtype);

std::string ReductionInWords(uint8_t reduction);

// "AllReduce(float32 x 1048576, sum)".
std::string CallInWords(const CallArgs& call);

// "communicator "dp"", or the first eight digits of its id.
std::string CommunicatorInWords(uint64_t id, const std::string& name);

// All 16 hexadecimal digits.
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
