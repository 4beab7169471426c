// SPDX-License-Identifier: Apache-2.0
#include "daemon/audit_log.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/clean_text.h"
#include "base/cut_text.h"
#include "base/log/limited_log.h"
#include "base/steady_clock.h"
#include "daemon/history/history_write.h"

namespace rollcall {
namespace {

constexpr size_t kMostAuditBytes = 4096;  // of what an operator acts on

}  // namespace

void AuditLog::Record(const AuditEntry& event) {
  // A caller may name as many hosts as a request holds.
  const std::string object = CutText(event.object, kMostAuditBytes, "...");
  // Lines that agents and strangers cause must not hide what an operator does.
  LogAlways(absl::StrCat("audit: ", CleanText(event.who), " (", event.peer, "): ", event.action,
                         ", ", CleanText(object)));
  incidents_->writers().SaveForLater(
      WriteOfAction({timeline_->WallNow(), event.who, event.action, object, event.peer}));
}

void AuditLog::RecordRefusal(const AuditEntry& event) {
  const std::optional<uint64_t> left_out = refused_.Take(event.who, event.action, SteadyNs());
  if (!left_out.has_value()) return;
  const std::string more =
      *left_out == 0 ? "" : absl::StrCat(" (and ", *left_out, " more since the last line)");
  Record({event.who, absl::StrCat("refused: ", event.action), absl::StrCat(event.object, more),
          event.peer});
}

}  // namespace rollcall
