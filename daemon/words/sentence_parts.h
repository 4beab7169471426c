// SPDX-License-Identifier: Apache-2.0
// The parts that the sentences of sentences.h share.
#pragma once

#include <string>
#include <vector>

#include "daemon/model/verdict.h"

namespace rollcall {

// "ranks 0-2,4".
std::string CulpritsInWords(const std::vector<Culprit>& culprits);

// "rank 3 (node-17, pid 4121)".
std::string Who(const std::vector<Culprit>& culprits);

// The culprits as the subject of a sentence, with what they are doing if that is known.
std::string Subject(const Verdict& v);

// "communicator "dp"".
std::string Where(const Verdict& v);

// "AllReduce #24", with its place in a CUDA graph.
std::string CallNumber(const Verdict& v);

// "; 3 ranks have waited 48 s in step 812"; "" if no rank waits.
std::string WaitTail(const Verdict& v);

// Returns the form of a word that fits the number of culprits.
const char* CulpritForm(const Verdict& v, const char* one, const char* many);

bool IsCreation(const Verdict& v);

// "Send to rank 3 of communicator "dp"". A peer is a rank of the communicator.
std::string EndInWords(const CallArgs& call, const std::string& communicator);

}  // namespace rollcall
