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
  Shorten(batch->mutable_op());
  Shorten(batch->mutable_dtype());
  Shorten(batch->mutable_reduction());
  Shorten(batch->mutable_peer());
  Shorten(batch->mutable_count());
  Shorten(batch->mutable_stream());
  Shorten(batch->mutable_caller());
  Shorten(batch->mutable_thread());
  Shorten(batch->mutable_group());
  Shorten(batch->mutable_result());
  Shorten(batch->mutable_flags());
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
