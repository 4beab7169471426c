// SPDX-License-Identifier: Apache-2.0
// What a person calls the job of a command line. Pure.
#pragma once

#include <string>
#include <vector>

namespace rollcall {

// Returns "train" for `python train.py` and `torchrun --nproc-per-node 8 train.py`, "pkg.train" for
// `python -m pkg.train`, and the name of the program for a command without a script.
std::string ScriptName(const std::vector<std::string>& command);

}  // namespace rollcall
