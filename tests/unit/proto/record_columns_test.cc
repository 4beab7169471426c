// SPDX-License-Identifier: Apache-2.0
// Of proto/record_columns.def.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "rollcall/v1/agent.pb.h"

namespace rollcall {
namespace {

TEST(RecordColumns, AreTheFieldsOfABatch) {
  std::set<std::string> in_table;
#define RECORD_FIELD(name) in_table.insert(#name);
#include "proto/record_columns.def"
  std::set<std::string> in_message;
  const google::protobuf::Descriptor* const batch = v1::RecordBatch::descriptor();
  for (int i = 0; i < batch->field_count(); ++i) {
    if (batch->field(i)->is_repeated()) in_message.insert(batch->field(i)->name());
  }
  EXPECT_EQ(in_table, in_message);
}

}  // namespace
}  // namespace rollcall
