// SPDX-License-Identifier: Apache-2.0
// The looks of `rollcall doctor` at the host. Each may block (a file server, a network): gather.h
// runs them with a deadline. They change nothing that outlives them.
//
// Where a look reads files of the system only, it takes their root, which tests replace by a
// recorded tree.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "agent/host_facts/host_files.h"
#include "cli/doctor/facts.h"

namespace rollcall::doctor {

using Environment = std::map<std::string, std::string>;

Environment ReadEnvironment();

// probe_library.cc
// Tries the library in a small program of this system.
LibraryFacts ProbeLibrary(const std::string& path, const Environment& environment);
std::set<std::string> FindMissingPreloads(const Environment& environment);

// probe_program.cc
// Follows PATH and the first lines of scripts. Runs the program only if it is Python, with a script
// of one line that prints its folders.
ProgramFacts ProbeProgram(const std::vector<std::string>& command, const Environment& environment);
NcclFacts FindNccl(const ProgramFacts& program, const Environment& environment,
                   const HostFiles& files);
// Folders in which the loader looks last.
std::vector<std::string> SystemFolders(const HostFiles& files);

// probe_folder.cc
FolderFacts ProbeFolder(const Environment& environment,
                        const std::string& shared_memory = "/dev/shm");
SharedMemoryFacts ProbeSharedMemory(const std::string& path = "/dev/shm");

// probe_tracing.cc
// Starts a process that waits, and traces it for a moment.
TracingFacts ProbeTracing(const HostFiles& files);

// probe_host.cc
KernelFacts ProbeKernel(const HostFiles& files);
ContainerFacts ProbeContainer(const Environment& environment, const HostFiles& files);
SystemdFacts ReadSystemd(const std::string& user, const HostFiles& files);
SlurmFacts ReadSlurm(const Environment& environment, const HostFiles& files);
GpuFacts ProbeGpu(const Environment& environment, const HostFiles& files);
std::string NameOfUser();

}  // namespace rollcall::doctor
