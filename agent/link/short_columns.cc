// SPDX-License-Identifier: Apache-2.0
#include "agent/link/short_columns.h"

#include <algorithm>

namespace rollcall {
namespace {

template <typename Column>
void Shorten(Column* column) {
  if (column->size() < 2) return;
  const auto first = column->Get(0);
  const bool equal = std::all_of(column->begin(), column->end(),
                                 [first](const auto& value) { return value == first; });
  if (equal) column->Truncate(1);
}

void ShortenBatch(v1::RecordBatch* batch) {
#define RECORD_COLUMN(type, name) Shorten(batch->mutable_##name());
#include "proto/record_columns.def"
}

}  // namespace

void ShortenColumns(v1::Tick* tick) {
  for (v1::ProcessUpdate& process : *tick->mutable_processes()) {
    for (v1::CommUpdate& comm : *process.mutable_communicators()) {
      if (comm.has_records()) ShortenBatch(comm.mutable_records());
    }
  }
}

}  // namespace rollcall
