// SPDX-License-Identifier: Apache-2.0
// The parts that the text and the HTML report share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "daemon/words/rank_ranges.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

// "2026-11-20 19:30:00 UTC"; "" for an unset time.
std::string TimeInWords(const google::protobuf::Timestamp& time);

// "20261120T193000Z", for file names.
std::string TimeForName(const google::protobuf::Timestamp& time);

// "rank 3, node-17, pid 4121, GPU 3, at train.py:57 in validate", without unknown parts.
std::string CulpritInWords(const v1::Culprit& culprit);

// All ranks of a list that a message may cut. `ranges`: the field of the message with all ranks; ""
// in incidents of earlier releases, whose lists are whole.
template <typename Listed>
RankRanges AllRanks(const Listed& listed, const std::string& ranges) {
  return ranges.empty() ? RankRanges(std::vector<int32_t>(listed.begin(), listed.end()))
                        : RankRanges(ranges);
}

// Returns all culprits and all waiting ranks.
RankRanges InvolvedRanks(const v1::Verdict& verdict);

// A line for each of the first culprits, and one for the rest.
std::vector<std::string> CulpritLines(const v1::Verdict& verdict);

// "train.py:57 in train_epoch".
std::string SiteInWords(const std::string& at);
// "ranks 0-2 at train.py:40 in train_epoch"; "" if no place is known.
std::string WaitingSitesInWords(const v1::Verdict& verdict);
// "rank 3 at train.py:57 in validate; ranks 0-2 at train.py:40 in train_epoch"; "" likewise.
std::string SitesInWords(const v1::Verdict& verdict);

// "AllReduce(float32 x 1048576, sum)".
std::string CallInWords(const v1::Call& call);
// "train.py:57 in train_epoch"; "" if the line is not known.
std::string CallSiteInWords(const v1::Call& call);

// "rank 3, node-17, pid 4121, culprit, taken 2026-11-20 19:30:00 UTC".
std::string StackTitle(const v1::ProcessStack& stack);

// The processes that it has started, "" if there are none.
std::string ChildrenTitle(const v1::ProcessStack& stack);
// This stands above the threads of one of them: "process 4130 "ffmpeg", which it has started".
std::string ChildTitle(const v1::ChildProcess& child);
// "thread 4121 "python", state S, in futex_wait".
std::string ThreadTitle(const v1::ThreadStack& thread);

// "#0 validate  train.py:212  (libfoo.so)".
std::string FrameInWords(const v1::Frame& frame, int number);

// Culprits' stacks first, otherwise in the given order.
std::vector<const v1::ProcessStack*> StacksInOrder(const v1::Incident& incident);

// The facts of a verdict as names and values, without empty values.
using Facts = std::vector<std::pair<std::string, std::string>>;
Facts VerdictFacts(const v1::Verdict& verdict);
Facts IncidentFacts(const v1::Incident& incident);

// HistoryLines() returns the two histories side by side, one line each, and marks those that
// differ. ChainLines() returns the chain of waits, one line each. Empty if there is none.
std::vector<std::string> HistoryLines(const v1::Verdict& verdict);
std::vector<std::string> ChainLines(const v1::Verdict& verdict);

// The sentence at the top of a report.
std::string Headline(const v1::Incident& incident);

}  // namespace rollcall
