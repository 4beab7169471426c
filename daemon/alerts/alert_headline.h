// SPDX-License-Identifier: Apache-2.0
// The sentence that a phone shows: "gpt-16k hung: 16,384 GPUs idle since 19:53 UTC: rank 4711
// (node-588) ...". Pure.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/alerts/alerts.h"

namespace rollcall {

// Job, how many ranks stand, since when, then the summary. Of an end, whether the job goes on.
std::string HeadlineInWords(const AlertMessage& message);

// What a reader must know about later alerts of the job, or empty.
std::string NoteInWords(const AlertMessage& message);

// The ranks that stand: all of the job, or those that the verdict names where their number is not
// known.
int32_t IdleRanks(const v1::Incident& incident);
// "GPUs", or "ranks" where the culprits use none.
const char* IdleUnit(const v1::Verdict& verdict);

// The first wait, if it is known, else when the hang was suspected.
const google::protobuf::Timestamp& HungSince(const v1::Incident& incident);
// How long it has lasted when the message was made, or lasted in all.
int64_t HungNs(const AlertMessage& message);

}  // namespace rollcall
