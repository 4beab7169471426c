// SPDX-License-Identifier: Apache-2.0
// Incidents of a history that is damaged, or of a daemon of another release: continued by a
// restarted daemon, shown, and made anonymous.
#include "daemon/access/clean_message.h"
#include "daemon/diagnosis/life/incident_life.h"
#include "daemon/incidents/returning_hosts.h"
#include "daemon/incidents/stored_incident.h"
#include "daemon/report/anonymize.h"
#include "daemon/report/html.h"
#include "daemon/report/incident_proto.h"
#include "daemon/report/json.h"
#include "daemon/report/report_text.h"
#include "fuzz_target.h"
#include "proto_mutator.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {
namespace fuzz {
namespace {

constexpr int64_t kNowNs = 1'800'000'000'000'000'000;

void Continue(const v1::Incident& stored) {
  Incident incident = FromStored(stored);
  (void)ToProto(incident);
  const JobState nobody{};
  IncidentLife life(incident.job);
  incident.is_stored = true;
  life.Restore(std::move(incident));
  for (const int64_t later_ns : {int64_t{0}, kLostForGoodNs, 2 * kLostForGoodNs}) {
    (void)life.Update(nobody, {}, kNowNs + later_ns, Limits());
  }
}

void Show(const v1::Incident& incident) {
  Promise(!ToText(incident).empty(), "a report has text");
  (void)ToJson(incident);
  const std::string html = ToHtml(incident, false);
  Promise(html.find("<script") == std::string::npos, "a report without a view runs nothing");
}

void Run(Input input) {
  const std::string_view bytes = input.TakeRest();
  v1::Incident incident;
  if (!incident.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  Continue(incident);
  CleanStrings(static_cast<google::protobuf::Message*>(&incident));
  Show(incident);
  Weaken("node-7 has not reported", &incident);
  Pseudonyms names;
  Anonymize(&incident, &names);
  Show(incident);
}

const Registered kTarget({"incident", 8192, &Run, &MutateAs<v1::Incident>});

}  // namespace
}  // namespace fuzz
}  // namespace rollcall
