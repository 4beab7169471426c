// SPDX-License-Identifier: Apache-2.0
// Makes an incident that its owner may show to others: without the names of hosts, jobs, tenants,
// users, pods, GPUs, communicators and files, without pids and without the messages of exceptions.
// What remains explains the hang: ranks, calls, sizes, times, functions, and the lines and files of
// well-known libraries.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "daemon/report/pseudonyms.h"
#include "daemon/report/text_kind.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

struct TextField {
  const char* field;  // "Culprit.host"
  TextKind kind;
};
// Every text field of v1::Incident, in the order of incident.proto.
const std::vector<TextField>& TextFields();
// Returns every number that identifies a process or thread.
const std::vector<std::string>& PidFields();

void Anonymize(v1::Incident* incident, Pseudonyms* names);

}  // namespace rollcall
