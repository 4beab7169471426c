// SPDX-License-Identifier: Apache-2.0
// The version of the programs: the project's, of CMakeLists.txt, and the commit that they were
// built from.
#pragma once

#include <string>

namespace rollcall {

// "1a2b3c4d5e6f", with "+dirty" if files of the commit were changed; "" if unknown.
extern const char kCommit[];

// What --version prints: "rollcalld 0.1.0 (commit 1a2b3c4d5e6f)".
std::string VersionLine(const std::string& program);

}  // namespace rollcall
