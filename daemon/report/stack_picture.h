// SPDX-License-Identifier: Apache-2.0
// The merged stacks as a picture (an icicle, outermost frame on top), for the report.
#pragma once

#include <string>

namespace rollcall {

namespace v1 {
class StackTree;
}

// Returns a self-contained SVG element, or "" if there is nothing to compare. Differences are on
// the left. A branch of few ranks is wider than its share, so that one rank of thousands is
// visible.
std::string StackPicture(const v1::StackTree& tree);

}  // namespace rollcall
