// SPDX-License-Identifier: Apache-2.0
// The parts that the text and the HTML report share.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "rollcall/v1/incident.pb.h"

namespace rollcall {

// "2026-11-20 19:30:00 UTC"; "" if it is not set.
std::string TimeInWords(const google::protobuf::Timestamp& time);

// "20261120T193000Z", for names of files.
std::string TimeForName(const google::protobuf::Timestamp& time);

// "rank 3, node-17, pid 4121, GPU 3, at train.py:57 in validate"; what is not known is left out.
std::string CulpritInWords(const v1::Culprit& culprit);

// "train.py:57 in train_epoch".
std::string PlaceInWords(const std::string& at);
// "ranks 0-2 at train.py:40 in train_epoch"; "" if no place is known.
std::string WaitingPlacesInWords(const v1::Verdict& verdict);
// "rank 3 at train.py:57 in validate; ranks 0-2 at train.py:40 in train_epoch"; "" likewise.
std::string PlacesInWords(const v1::Verdict& verdict);

// "AllReduce(float32 x 1048576, sum)".
std::string CallInWords(const v1::Call& call);
// "train.py:57 in train_epoch"; "" if the line is not known.
std::string CodeInWords(const v1::Call& call);

// "rank 3, node-17, pid 4121, culprit, taken 2026-11-20 19:30:00 UTC".
std::string StackTitle(const v1::ProcessStack& stack);

// "thread 4121 "python", state S, in futex_wait".
std::string ThreadTitle(const v1::ThreadStack& thread);

// "#0 validate  train.py:212  (libfoo.so)".
std::string FrameInWords(const v1::Frame& frame, int number);

// Culprits' stacks first, otherwise in the given order.
std::vector<const v1::ProcessStack*> StacksInOrder(const v1::Incident& incident);

// The facts of a verdict as names and values, without empty values.
using Facts = std::vector<std::pair<std::string, std::string>>;
Facts FactsOf(const v1::Verdict& verdict);
Facts FactsOf(const v1::Incident& incident);

// The two histories side by side, a line each, those that differ marked; the
// chain of waits, a line each. Empty where there is none.
std::vector<std::string> HistoryLines(const v1::Verdict& verdict);
std::vector<std::string> ChainLines(const v1::Verdict& verdict);

// The sentence on top of everything.
std::string Headline(const v1::Incident& incident);

}  // namespace rollcall
