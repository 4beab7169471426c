// SPDX-License-Identifier: Apache-2.0
// What NCCL's RAS reports of a job: the text that `ncclras -v` prints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/model/job_model.h"

namespace rollcall {

struct RasRank {
  int32_t rank = -1;         // in the communicator; -1 means a process, of which RAS names no rank
  int32_t global_rank = -1;  // -1 if unknown. RAS does not have it: the look at the job does
  int32_t device = -1;
  int32_t pid = 0;  // 0 if RAS does not have the process
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
  uint64_t communicator = 0;     // its hash; 0 means the whole job
  std::string operation;         // "AllReduce"; empty means all operations together
  std::vector<RasCount> counts;  // kMismatch
  std::vector<RasRank> lost;     // kIncomplete, kDead
};

// The ranks of all findings together that anybody looks at: RAS lists in a few words what would
// make millions of entries.
inline constexpr size_t kMostRasRanksOfAll = 1 << 18;

// The ranks that the counts of a mismatch are of. More than one finding may have: some such number.
size_t RanksOf(const RasFinding& finding);

// Findings share it, in their order. One that does not fit in what is left, or is of too many ranks
// alone, is left out.
class RasBudget {
 public:
  // False if the finding is left out.
  bool Take(const RasFinding& finding);
  size_t left_out() const { return left_out_; }

 private:
  size_t left_ = kMostRasRanksOfAll;
  size_t left_out_ = 0;
};

// a note on findings that are left out, or empty.
std::string LeftOutInWords(size_t findings);

bool IsRasOutput(const std::string& text);

std::vector<RasFinding> ReadRasOutput(const std::string& text);

// The counts of a mismatch by rank. RAS may leave out the ranks of one count: these are all the
// others. None if it leaves out more.
std::map<int32_t, uint64_t> CountsByRank(const RasFinding& finding);

// Returns one line for each finding.
std::vector<std::string> RasInWords(const std::vector<RasFinding>& findings);

// Returns the job as RAS sees it, for the rules: without operations and without the ranks it does
// not name. Returns the number of findings that are left out.
size_t FillModel(const std::vector<RasFinding>& findings, JobModel* model);

}  // namespace rollcall
