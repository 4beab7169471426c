// SPDX-License-Identifier: Apache-2.0
#include "daemon/incidents/incident_record.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "daemon/report/incident_proto.h"

namespace rollcall {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

Incident Diagnosed() {
  Incident incident;
  incident.id = "train-1";
  incident.job = JobKey("train", 2);
  incident.state = IncidentState::kConfirmed;
  incident.opened_ns = 1;
  incident.confirmed_ns = 2;
  incident.closed_ns = 3;
  incident.verdicts.emplace_back();
  incident.versions.emplace_back();
  return incident;
}

// Gives the field some value that is not its default.
void Fill(const FieldDescriptor& field, Message* message) {
  const google::protobuf::Reflection& access = *message->GetReflection();
  if (field.is_repeated()) {
    ASSERT_EQ(field.cpp_type(), FieldDescriptor::CPPTYPE_MESSAGE) << field.name();
    access.AddMessage(message, &field);
    return;
  }
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      access.MutableMessage(message, &field);
      break;
    case FieldDescriptor::CPPTYPE_STRING:
      access.SetString(message, &field, "x");
      break;
    case FieldDescriptor::CPPTYPE_BOOL:
      access.SetBool(message, &field, true);
      break;
    case FieldDescriptor::CPPTYPE_INT32:
      access.SetInt32(message, &field, 7);
      break;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      access.SetDouble(message, &field, 7);
      break;
    default:
      FAIL() << "a kind of field that this test does not know: " << field.name();
  }
}

TEST(IncidentRecordTest, DiagnosedFieldsAreThoseOfTheConversion) {
  const v1::Incident incident = ToProto(Diagnosed());
  std::vector<const FieldDescriptor*> set;
  v1::Incident::GetReflection()->ListFields(incident, &set);
  EXPECT_EQ(std::set<const FieldDescriptor*>(set.begin(), set.end()),
            std::set<const FieldDescriptor*>(DiagnosedFields().begin(), DiagnosedFields().end()));
}

TEST(IncidentRecordTest, RewriteKeepsWhatIsNoPartOfTheDiagnosis) {
  const std::set<std::string> own = {"rollcall_version", "ended_ranks", "report_path"};
  IncidentRecord record;
  v1::Incident before;
  for (int i = 0; i < v1::Incident::descriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *v1::Incident::descriptor()->field(i);
    const auto& diagnosed = DiagnosedFields();
    const bool changes = own.count(field.name()) > 0 ||
                         std::find(diagnosed.begin(), diagnosed.end(), &field) != diagnosed.end();
    if (!changes) Fill(field, &before);
  }
  record.incident = before;
  Rewrite(Diagnosed(), &record);
  EXPECT_EQ(record.incident.id(), "train-1");
  v1::Incident kept = record.incident;
  for (const FieldDescriptor* field : DiagnosedFields())
    kept.GetReflection()->ClearField(&kept, field);
  kept.clear_rollcall_version();
  EXPECT_EQ(kept.DebugString(), before.DebugString());
}

TEST(IncidentRecordTest, RewriteTakesAwayTheNoteOfTheQuota) {
  IncidentRecord record;
  record.is_over_quota = true;
  record.incident.set_report_note("not stored");
  Rewrite(Diagnosed(), &record);
  EXPECT_EQ(record.incident.report_note(), "");
}

// Rank 1 was late, and then makes another call than the others.
TEST(IncidentRecordTest, ForgetsWhatTheCulpritDidBeforeItsOddCall) {
  Incident now = Diagnosed();
  Verdict& root = now.verdicts.front();
  root.cause = Cause::kMissingRank;
  root.culprits.resize(1);
  root.culprits[0].host = "node-1";
  root.culprits[0].pid = 4001;
  IncidentRecord record;
  Rewrite(now, &record);
  for (const int pid : {4001, 4002}) {
    v1::ProcessStack* stack = record.incident.add_stacks();
    stack->set_host("node-1");
    stack->set_pid(pid);
  }
  Rewrite(now, &record);
  EXPECT_EQ(record.incident.stacks_size(), 2) << "it is as late as before";
  root.cause = Cause::kArgumentMismatch;
  Rewrite(now, &record);
  ASSERT_EQ(record.incident.stacks_size(), 1);
  EXPECT_EQ(record.incident.stacks(0).pid(), 4002);
  record.incident.add_stacks()->set_host("node-1");
  record.incident.mutable_stacks(1)->set_pid(4001);
  Rewrite(now, &record);
  EXPECT_EQ(record.incident.stacks_size(), 2) << "the sample of the odd call stays";
}

}  // namespace
}  // namespace rollcall
