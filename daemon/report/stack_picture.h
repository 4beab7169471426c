// SPDX-License-Identifier: Apache-2.0
// The merged stacks as a picture (an icicle, outermost frame on top), for the report.
#pragma once

#include <string>

namespace rollcall {

namespace v1 {
class StackTree;
}

// A self-contained SVG element, or "" if there is nothing to compare. What differs stands on the
// left; a branch of few ranks is drawn wider than its share, so that one rank of thousands shows.
std::string StackPicture(const v1::StackTree& tree);

}  // namespace rollcall
