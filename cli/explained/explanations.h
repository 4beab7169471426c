// SPDX-License-Identifier: Apache-2.0
// What well-known lines of the logs of distributed training jobs mean: the table of `rollcall
// explain`. Its rows are in the .def files of this folder, one for each kind of source.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rollcall {

struct Explanation {
  const char* id;  // for scripts: never changes
  // A line matches if it has all of these texts, in this order, in any case. At least one; the
  // others may be left out.
  std::string_view texts[3];
  const char* means;   // who wrote the line, and its meaning
  const char* beware;  // what people wrongly conclude from it, or empty
  const char* run;     // what to do next: a command, or one sentence
  // where the line is written: repository and file, documentation, or issue
  const char* source;
};

// In the order of the table: of several rows that match a line, the first is the one to give.
const std::vector<Explanation>& Explanations();

// Returns the row for this line, or nullptr.
const Explanation* FindExplanation(std::string_view line);

}  // namespace rollcall
