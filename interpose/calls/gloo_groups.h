// SPDX-License-Identifier: Apache-2.0
// Which gloo group of PyTorch belongs together on all ranks, and how people call it.
//
// PyTorch gives each group a store of its own: a chain of c10d::PrefixStore around one store of the
// job ("default_pg", "0/", "cpu/"). The prefixes are equal on all members, so a hash of them and of
// the size of the group is the group's id. The table has a fixed size. A store that it has
// forgotten has the id of the other unknown stores, and its group is then distinguished by its
// creation only.
//
// For the wrappers of the constructors and of setGroupDesc, from any thread, before PyTorch's own
// code runs. Nothing here allocates, locks or changes errno.
#pragma once

#include "interpose/calls/torch_objects.h"
#include "interpose/local_comm.h"
#include "interpose/record/comm_table.h"

namespace rollcall {

void RecordPrefixStore(const void* store, TextView prefix, const void* inner);

// Records the store of a c10d::ProcessGroup, which holds gloo groups for its devices.
void RecordProcessGroup(const void* group, const void* store);

// The facts about a gloo group that is about to be made.
struct GlooGroup {
  NewComm what;
  uint64_t owner = 0;  // the id of the store of its c10d::ProcessGroup; 0 if unknown
  char name[sizeof(segment::CommEntry::name)] = {};
};
void DescribeGlooGroup(const void* store, int32_t rank, int32_t size, GlooGroup* group);

// Binds the group's communicator to its c10d::ProcessGroup, which will get a name.
void SetOwner(const LocalComm* comm, uint64_t owner);

// Gives the name to all gloo groups of the c10d::ProcessGroup.
void NameProcessGroup(const void* group, TextView name);

}  // namespace rollcall
