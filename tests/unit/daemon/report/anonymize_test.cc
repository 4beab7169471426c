// SPDX-License-Identifier: Apache-2.0
// What an anonymous report shows. Each text field of incident.proto is filled with a secret, so an
// unclassified field cannot reach a reader.
#include "daemon/report/anonymize.h"

#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "daemon/report/html.h"
#include "daemon/report/json.h"
#include "daemon/report/report_text.h"
#include "daemon/report/stacks_text.h"

namespace rollcall {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

std::string NameOf(const FieldDescriptor* field) {
  return std::string(absl::StripPrefix(field->full_name(), "rollcall.v1."));
}

// The text fields of the message and of all messages in it.
void FindTextFields(const Descriptor* type, std::set<const Descriptor*>* seen,
                    std::set<std::string>* found) {
  if (!seen->insert(type).second) return;
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) found->insert(NameOf(field));
    if (field->message_type() != nullptr) FindTextFields(field->message_type(), seen, found);
  }
}

TEST(AnonymizeTest, EachTextFieldIsClassified) {
  std::set<const Descriptor*> seen;
  std::set<std::string> found, classified;
  FindTextFields(v1::Incident::descriptor(), &seen, &found);
  for (const TextField& row : TextFields()) {
    EXPECT_TRUE(classified.insert(row.field).second) << row.field << " has two rows";
  }
  EXPECT_EQ(classified, found) << "add each new field to daemon/report/anonymize_table.cc";
}

TEST(AnonymizeTest, EachNumberOfAProcessIsAField) {
  for (const std::string& name : PidFields()) {
    const auto dot = name.find('.');
    const Descriptor* type =
        v1::Incident::descriptor()->file()->FindMessageTypeByName(name.substr(0, dot));
    ASSERT_NE(type, nullptr) << name;
    EXPECT_NE(type->FindFieldByName(name.substr(dot + 1)), nullptr) << name;
  }
}

// The secret of a field, in the form that the field has.
std::string SecretFor(const std::string& field, TextKind kind) {
  std::string word = absl::StrCat("zecret", field);
  for (char& c : word) c = c == '.' || c == '_' ? 'Z' : c;
  switch (kind) {
    case TextKind::kPublic:
    case TextKind::kFunction:
      return absl::StrCat("stays", word.substr(6));
    case TextKind::kFile:
      return absl::StrCat("/home/", word, "/", word, ".py");
    case TextKind::kSite:
      return absl::StrCat("/home/", word, "/", word, ".py:57 in validate");
    case TextKind::kAddress:
      return absl::StrCat("/home/", word, "/", word, ".so+0x1234");
    case TextKind::kError:
      return absl::StrCat("ValueError: ", word, " at /home/", word, "/", word, ".py:57");
    case TextKind::kText:
      return absl::StrCat(
          "rank 3 on zecretCulpritZhost, pid 987654, is in zecretCulpritZat.py:57 "
          "of job zecretIncidentZjob on \"zecretCommunicatorRefZname\" with \"",
          SecretFor("Culprit.error", TextKind::kError),
          "\"; no report from the agent "
          "of ",
          word, ", ", word, "-2; see /home/", word, "/x, ", word, ".py:3");
    default:
      return word;
  }
}

const TextField& RowOf(const std::string& field) {
  for (const TextField& row : TextFields()) {
    if (field == row.field) return row;
  }
  static const TextField unknown = {"?", TextKind::kDropped};
  return unknown;
}

// Fills every field of the message: texts with secrets, pids with 987654.
void Fill(Message* message) {
  const Reflection& reflection = *message->GetReflection();
  const Descriptor* type = message->GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    const std::string name = NameOf(field);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      const std::string secret = SecretFor(name, RowOf(name).kind);
      if (field->is_repeated()) {
        reflection.AddString(message, field, secret);
      } else {
        reflection.SetString(message, field, secret);
      }
    } else if (field->message_type() != nullptr) {
      Fill(field->is_repeated() ? reflection.AddMessage(message, field)
                                : reflection.MutableMessage(message, field));
    }
    for (const std::string& pid : PidFields()) {
      if (pid != name) continue;
      if (field->is_repeated()) {
        reflection.AddInt32(message, field, 987654);
      } else {
        reflection.SetInt32(message, field, 987654);
      }
    }
  }
}

v1::Incident Filled() {
  v1::Incident incident;
  Fill(&incident);
  return incident;
}

TEST(AnonymizeTest, NoSecretOfAnyFieldIsLeftInAnyForm) {
  v1::Incident incident = Filled();
  ASSERT_TRUE(absl::StrContains(ToJson(incident).value(), "zecret"));
  Pseudonyms names;
  Anonymize(&incident, &names);
  for (const std::string& text : {incident.DebugString(), ToJson(incident).value(),
                                  ToText(incident), ToHtml(incident), StacksToText(incident)}) {
    EXPECT_FALSE(absl::StrContains(text, "zecret")) << text.substr(text.find("zecret"), 200);
    EXPECT_FALSE(absl::StrContains(text, "987654"));
    EXPECT_FALSE(absl::StrContains(text, "/home"));
  }
}

TEST(AnonymizeTest, WhatExplainsTheHangStays) {
  v1::Incident incident = Filled();
  Pseudonyms names;
  Anonymize(&incident, &names);
  const v1::Culprit& culprit = incident.verdicts(0).culprits(0);
  EXPECT_EQ(culprit.call().operation(), "staysCallZoperation");
  EXPECT_TRUE(absl::StrContains(culprit.at(), ".py:57 in validate")) << culprit.at();
  EXPECT_TRUE(absl::StrContains(culprit.error(), "ValueError: [message hidden] at file-"));
  EXPECT_EQ(incident.stacks(0).threads(0).frames(0).function(), "staysFrameZfunction");
}

v1::Incident RealIncident() {
  v1::Incident incident;
  incident.set_id("llama-7b-3");
  incident.set_job("llama-7b");
  incident.set_tenant("default");
  v1::Verdict* verdict = incident.add_verdicts();
  v1::Culprit* culprit = verdict->add_culprits();
  culprit->set_rank(3);
  culprit->set_host("node-17.lab");
  culprit->set_pid(4121);
  culprit->set_at("/home/me/run/train.py:212 in validate");
  culprit->set_error("ValueError: no row 'me@lab' at /home/me/run/data.py:9");
  verdict->mutable_communicator()->set_name("dp");
  verdict->set_summary(
      "rank 3 (node-17, pid 4121, GPU 3) is in validate(), train.py:212, and has not called "
      "AllReduce #8812 on \"dp\"; 63 ranks have waited 48 s.");
  verdict->add_missing_evidence("no reports from node-9, node-12 for 20 s");
  verdict->add_missing_evidence("the agent of rank 3 no longer responds: its data is old");
  verdict->add_evidence(
      "rank 3 ended with \"ValueError: no row 'me@lab' at /home/me/run/data.py:9\"");
  verdict->add_evidence("rank 5 ended with \"KeyError: 'me@lab'\"");
  verdict->add_evidence("rank 3 is handling OSError: me@lab (`validate` (train.py:212)); all wait");
  v1::ThreadStack* thread = incident.add_stacks()->add_threads();
  thread->set_name("pt_autograd_0");
  v1::Frame* frame = thread->add_frames();
  frame->set_function("all_reduce");
  frame->set_file("/opt/env/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py");
  frame = thread->add_frames();
  frame->set_function("step");
  frame->set_file("/opt/env/lib/python3.11/site-packages/acme/loop.py");
  frame->set_module("/usr/lib/x86_64-linux-gnu/libc.so.6");
  frame->set_address("/usr/lib/x86_64-linux-gnu/libc.so.6+0x1234");
  thread->add_frames()->set_file("/usr/include/c++/12/bits/std_function.h");
  incident.mutable_stack_tree()->add_nodes()->set_frame("validate train.py:212");
  incident.mutable_stack_tree()->add_nodes()->set_frame("all_reduce distributed_c10d.py:2810");
  return incident;
}

// "all ranks" is not a secret, and a word of many sentences. A program without lines has only a
// name.
TEST(AnonymizeTest, HidesAProgramWithoutLinesAndNoRanks) {
  v1::Incident incident = RealIncident();
  v1::Verdict* verdict = incident.mutable_verdicts(0);
  verdict->mutable_culprits(0)->set_at("/home/me/bin/secretapp in Validate");
  verdict->mutable_communicator()->set_name("all ranks");
  verdict->set_summary("rank 3 is in `Validate` (secretapp), and all ranks wait");
  Pseudonyms names;
  Anonymize(&incident, &names);
  EXPECT_EQ(verdict->communicator().name(), "all ranks");
  EXPECT_EQ(verdict->summary(), "rank 3 is in `Validate` (file-2), and all ranks wait");
  EXPECT_EQ(verdict->culprits(0).at(), "file-2 in Validate");
}

TEST(AnonymizeTest, ASentenceUsesThePseudonymsOfTheFields) {
  v1::Incident incident = RealIncident();
  Pseudonyms names;
  Anonymize(&incident, &names);
  const v1::Verdict& verdict = incident.verdicts(0);
  EXPECT_EQ(incident.id(), "incident-1");
  EXPECT_EQ(incident.job(), "job-1");
  EXPECT_EQ(incident.tenant(), "default");
  EXPECT_EQ(verdict.culprits(0).at(), "file-2.py:212 in validate");
  EXPECT_EQ(verdict.summary(),
            "rank 3 (host-1, pid 1, GPU 3) is in validate(), file-2.py:212, and has not called "
            "AllReduce #8812 on \"communicator-1\"; 63 ranks have waited 48 s.");
  EXPECT_EQ(verdict.missing_evidence(0), "no reports from host-2, host-3 for 20 s");
  EXPECT_EQ(verdict.missing_evidence(1), "the agent of rank 3 no longer responds: its data is old");
  EXPECT_EQ(verdict.evidence(0),
            "rank 3 ended with \"ValueError: [message hidden] at file-1.py:9\"");
  EXPECT_EQ(verdict.evidence(1), "rank 5 ended with \"KeyError: [message hidden]\"");
  EXPECT_EQ(verdict.evidence(2),
            "rank 3 is handling OSError: [message hidden] (`validate` (file-2.py:212)); all wait");
}

TEST(AnonymizeTest, ASentenceDoesNotNameTheOtherJobOfACulprit) {
  v1::Incident incident = RealIncident();
  v1::Verdict* verdict = incident.mutable_verdicts(0);
  verdict->mutable_culprits(0)->set_job("engine");
  verdict->set_summary("rank 3 is rank 1 of job engine: rank 3 is late");
  Pseudonyms names;
  Anonymize(&incident, &names);
  EXPECT_EQ(verdict->culprits(0).job(), "job-2");
  EXPECT_EQ(verdict->summary(), "rank 3 is rank 1 of job job-2: rank 3 is late");
}

TEST(AnonymizeTest, FilesOfWellKnownLibrariesKeepTheirNames) {
  v1::Incident incident = RealIncident();
  Pseudonyms names;
  Anonymize(&incident, &names);
  const v1::ThreadStack& thread = incident.stacks(0).threads(0);
  EXPECT_EQ(thread.name(), "pt_autograd_0");
  EXPECT_EQ(thread.frames(0).file(), "distributed_c10d.py");
  EXPECT_EQ(thread.frames(1).file(), "file-3.py") << "a package that not everybody has";
  EXPECT_EQ(thread.frames(2).file(), "std_function.h");
  EXPECT_EQ(thread.frames(1).module(), "libc.so.6");
  EXPECT_EQ(thread.frames(1).address(), "libc.so.6+0x1234");
  EXPECT_EQ(incident.stack_tree().nodes(0).frame(), "validate file-2.py:212");
  EXPECT_EQ(incident.stack_tree().nodes(1).frame(), "all_reduce distributed_c10d.py:2810");
}

}  // namespace
}  // namespace rollcall
