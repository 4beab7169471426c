// SPDX-License-Identifier: Apache-2.0
// Merges the stacks of processes, as agents send them, into one tree.
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

// "ncclAllReduce"; "validate train.py:212" for Python; "libx.so+0x12" for a frame without a name.
// Omits lines of C and C++, which would separate equal stacks.
std::string FrameLabel(const v1::Frame& frame);

// Adds all threads with frames. Omits the interpreter's own functions between Python's.
void AddToTree(const v1::ProcessStack& stack, int32_t rank, StackTree* tree);

// Keeps at most `most_nodes` nodes, differences first; sets `cut` if the tree has more.
v1::StackTree ToProto(const StackTree& tree, size_t most_nodes = 20000);
StackTree FromProto(const v1::StackTree& message);

}  // namespace rollcall
