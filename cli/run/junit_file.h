// SPDX-License-Identifier: Apache-2.0
// The file of `rollcall run --junit`: the run as one test case, in the XML that CI systems read.
#pragma once

#include <string>

namespace rollcall {

// The end of a run. The file agrees with the exit code: a run that exits with 0 has passed, also
// after a wait that ended by itself.
struct JUnitRun {
  std::string job;
  double seconds = 0;
  int exit_code = 0;
  std::string cause;     // of the first verdict; empty if nothing hung
  std::string summary;   // of the first verdict, one line
  std::string verdicts;  // what `rollcall run` printed about all incidents
};

// Returns the whole file.
std::string JUnitText(const JUnitRun& run);
// The file while the job runs: an error, which stays if the end is never written.
std::string JUnitTextOfUnended(const std::string& job);

}  // namespace rollcall
