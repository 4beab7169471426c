// SPDX-License-Identifier: Apache-2.0
// The inputs in corpus/. run.sh --minimise writes corpus/TARGET.tar.gz: few inputs that together
// reach all the code that is known to be reached. People add files to corpus/TARGET/, one for each
// defect.
#pragma once

#include <string>
#include <vector>

namespace rollcall {
namespace fuzz {

// Both, ordered by name. Aborts if the archive is damaged.
std::vector<std::string> KeptInputs(const std::string& folder, const std::string& target);

}  // namespace fuzz
}  // namespace rollcall
