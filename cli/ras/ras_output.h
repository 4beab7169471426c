// SPDX-License-Identifier: Apache-2.0
// What NCCL's RAS says of a job: the text that `ncclras -v` prints.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/model/job_model.h"

namespace rollcall {

struct RasRank {
  int32_t rank = -1;         // in the communicator; -1: a process, of which RAS names no rank
  int32_t global_rank = -1;  // -1: not known. RAS does not know it: the look at the job does
  int32_t device = -1;
  int32_t pid = 0;  // 0: RAS does not know the process
  std::string node;
};

// Ranks that have launched the same number of operations. RAS names those of small groups only, and
// leaves out a rank that is alone with its number in a small communicator.
struct RasCount {
  uint64_t operations = 0;
  size_t ranks = 0;
  std::vector<RasRank> named;
};

// One of RAS's errors or warnings.
struct RasFinding {
  enum class Kind : uint8_t { kMismatch, kIncomplete, kDead };
  Kind kind = Kind::kMismatch;
  uint64_t communicator = 0;     // its hash; 0: of the whole job
  std::string operation;         // "AllReduce"; "": all operations together
  std::vector<RasCount> counts;  // kMismatch
  std::vector<RasRank> lost;     // kIncomplete, kDead
};

bool IsRasOutput(const std::string& text);

std::vector<RasFinding> ReadRasOutput(const std::string& text);

// The counts of a mismatch by rank. RAS may leave out the ranks of one count: these are all the
// others. None if it leaves out more.
std::map<int32_t, uint64_t> CountsByRank(const RasFinding& finding);

// One line for each finding.
std::vector<std::string> RasInWords(const std::vector<RasFinding>& findings);

// The job as RAS sees it, for the rules: without operations and without the ranks it does not name.
void FillModel(const std::vector<RasFinding>& findings, JobModel* model);

}  // namespace rollcall
