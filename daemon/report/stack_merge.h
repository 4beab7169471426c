// SPDX-License-Identifier: Apache-2.0
// From the stacks of processes, as agents send them, to the tree of all.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/report/stacks/stack_tree.h"

namespace rollcall {

namespace v1 {
class Frame;
class ProcessStack;
class StackTree;
}  // namespace v1

// "ncclAllReduce", "validate train.py:212" for Python, "libx.so+0x12" without a name. Lines of C
// and C++ are left out: they would separate equal stacks.
std::string FrameLabel(const v1::Frame& frame);

// Adds all threads that have frames. The interpreter's own functions between Python's are left out.
void AddToTree(const v1::ProcessStack& stack, int32_t rank, StackTree* tree);

// At most `most_nodes` nodes, differences first; `cut` is set if the tree has more.
v1::StackTree ToProto(const StackTree& tree, size_t most_nodes = 20000);
StackTree FromProto(const v1::StackTree& message);

}  // namespace rollcall
