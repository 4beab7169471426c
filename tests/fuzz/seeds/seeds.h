// SPDX-License-Identifier: Apache-2.0
// Inputs to begin with, made by the code of today: segments, certificates, dumps, messages. The
// corpora grow from them. A change of a format makes kept inputs invalid, but never these.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace rollcall {
namespace fuzz {

using Seeds = std::map<std::string, std::vector<std::string>>;  // by target

// For the targets that read texts: token files, web.yml, grants, addresses, requests, /proc.
void AddTextSeeds(Seeds* seeds);
// Certificates, keys, revocation lists, JWTs.
void AddSecuritySeeds(Seeds* seeds);
// Segments, Python's memory.
void AddAgentSeeds(Seeds* seeds);
// Stories of agents, incidents.
void AddDaemonSeeds(Seeds* seeds);
// Dumps of the Flight Recorder.
void AddDumpSeeds(Seeds* seeds);
// `elf`: the bytes of a small ELF file.
void AddElfSeeds(const std::string& elf, Seeds* seeds);

// All of them, without ELF files.
Seeds AllSeeds();

}  // namespace fuzz
}  // namespace rollcall
