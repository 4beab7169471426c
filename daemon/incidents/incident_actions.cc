// SPDX-License-Identifier: Apache-2.0
#include "daemon/incidents/incident_actions.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/clean_text.h"
#include "proto/timestamps.h"
#include "security/redact.h"
#include "security/shown_text.h"

namespace rollcall {
absl::Status AddNote(const std::string& who, const std::string& text, int64_t wall_ns,
                     v1::Incident* incident) {
  // Before it is cleaned: cleaning cuts long texts.
  if (text.size() > kMostNoteBytes) {
    return absl::OutOfRangeError(
        absl::StrCat("this note has ", text.size(), " bytes; a note has at most ", kMostNoteBytes));
  }
  const std::string redacted = DefaultRedactor()->Redact(CleanText(ShownText(text)));
  const std::string clean(absl::StripAsciiWhitespace(redacted));
  if (clean.empty()) return absl::InvalidArgumentError("a note needs a text");
  if (incident->notes_size() >= kMostNotes) {
    return absl::FailedPreconditionError(absl::StrCat("incident ", incident->id(), " has ",
                                                      kMostNotes, " notes, and takes no more"));
  }
  v1::Note* note = incident->add_notes();
  note->set_who(CleanText(who));
  note->set_text(clean);
  *note->mutable_at() = ToTimestamp(wall_ns);
  return absl::OkStatus();
}

absl::Status Acknowledge(const std::string& who, int64_t wall_ns, v1::Incident* incident) {
  const std::string clean = CleanText(who);
  if (incident->has_acknowledged()) {
    if (incident->acknowledged().who() == clean) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(incident->acknowledged().who(),
                                                      " has acknowledged ", incident->id(),
                                                      "; take that back first"));
  }
  incident->mutable_acknowledged()->set_who(clean);
  *incident->mutable_acknowledged()->mutable_at() = ToTimestamp(wall_ns);
  return absl::OkStatus();
}

absl::Status TakeBackAcknowledgement(v1::Incident* incident) {
  if (!incident->has_acknowledged()) {
    return absl::FailedPreconditionError(absl::StrCat(incident->id(), " is not acknowledged"));
  }
  incident->clear_acknowledged();
  return absl::OkStatus();
}

}  // namespace rollcall
