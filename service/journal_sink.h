// SPDX-License-Identifier: Apache-2.0
// The log of a service. Under systemd it goes to the journal by the journal's own protocol, with
// priority and fields (base/log/log_fields.h): `journalctl ROLLCALL_JOB=NAME` finds a job's lines.
// The protocol is documented as stable and free to implement. Elsewhere, and while the journal
// takes nothing, the log goes to stderr.
#pragma once

#include <spdlog/common.h>
#include <spdlog/details/log_msg.h>

#include <memory>
#include <string>

namespace rollcall {

// The datagram for one line: its text, the program's name, and the fields of this thread.
std::string JournalEntry(const spdlog::details::log_msg& line);

// `socket`: of the journal. `otherwise`: gets the lines that the journal does not take.
spdlog::sink_ptr MakeJournalSink(const std::string& socket, spdlog::sink_ptr otherwise);

// Whether systemd has connected stderr with the journal.
bool IsStderrJournal();

// The sink for the log of a service.
spdlog::sink_ptr MakeServiceSink();

}  // namespace rollcall
